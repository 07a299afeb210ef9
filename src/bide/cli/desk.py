"""What a command has at hand: a store, an application, and a way to tell people and programs what there is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from bide.cli.exits import CliError, Exit, code_of, document_of, hints_of
from bide.errors import BideError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from bide.cli.loading import Loaded
    from bide.cli.presence import Missing
    from bide.graph.compiled import CompiledGraph
    from bide.runtime import Bide
    from bide.server.config import AppSettings
    from bide.store import Store

DEFAULT_STORE = "sqlite:///bide.db"
ENDLESS = 10_000
"""How wide a pipe is: nobody wants a table cut where no terminal is."""


class Place(NamedTuple):
    """Where to look, as it was typed."""

    app: str | None
    store: str | None
    schema: str | None


class Desk:
    """Opened when a command asks for it, closed when the command is over."""

    def __init__(self, place: Place, *, as_json: bool) -> None:
        self.place = place
        self.as_json = as_json
        self.missing: Missing = "refuse"
        """What becomes of an application's database that is not there: only some commands make one."""
        self.known: dict[str, str] = {}
        """What was found on the way, by the names that hints have for it: the ids of a thread and of a wait."""
        self.given: tuple[str, ...] = ()
        """Places of graphs that were named beside the options."""
        self._opened: list[Any] = []

    # ── Telling ────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def out(self) -> Console:
        """Where results go."""
        return _console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """Where everything else goes: errors, progress, what a person likes to know meanwhile."""
        return _console(sys.stderr)

    def tell(self, document: Any, *shown: RenderableType) -> None:
        """Print a result: the document for programs, or the rest for people."""
        if self.as_json:
            self.tell_line(document, indent=2)
            return
        for one in shown:
            self._print(one)

    def _print(self, shown: RenderableType) -> None:
        """Print for people; in a pipe without the blanks that fill a table up."""
        if self.out.is_terminal:
            self.out.print(shown)
            return
        with self.out.capture() as captured:
            self.out.print(shown)
        self.out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    def tell_line(self, document: Any, *, indent: int | None = None) -> None:
        """Print a JSON document, in one line unless it is to be indented."""
        from bide.cli.plain import plain

        sys.stdout.write(json.dumps(plain(document), ensure_ascii=False, indent=indent) + "\n")
        sys.stdout.flush()

    def note(self, text: str, *, style: str = "dim") -> None:
        """Tell people something beside the result."""
        if not self.as_json:
            self.err.print(text, style=style)

    # ── What there is ──────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def loaded(self) -> Loaded:
        """What `--app` or a bide.toml names: an application, or graphs; nothing, when nothing was named."""
        from bide.cli.loading import Loaded, load_all

        places = self.places
        if not places:
            return Loaded()
        from bide.cli.presence import check_only_store, databases

        with databases(self.missing, ", ".join(places)):
            loaded = load_all(places)
        own = loaded.store if loaded.app is None else loaded.app.store
        if own is not None:
            self._opened.append(own)
            check_only_store(own, self.place)
        return loaded

    @cached_property
    def settled(self) -> AppSettings:
        """What the bide.toml of this folder says, where neither an application nor a store was named."""
        from bide.server.config import AppSettings, find_config, read_app

        found = None if self.place.app or self.place.store or self.given else find_config()
        return AppSettings() if found is None else read_app(found)

    @property
    def places(self) -> tuple[str, ...]:
        """Where graphs come from: what was named on the command line, or else in bide.toml."""
        if self.given or self.place.app is not None:
            return self.given or (str(self.place.app),)
        return self.settled.graphs if self.settled.app is None else (self.settled.app,)

    @cached_property
    def app(self) -> Bide:
        """The application: the one that was named, or one over the store with the graphs that were."""
        return self._application(must_exist=True)

    @cached_property
    def new_app(self) -> Bide:
        """The application; its database is made, if there is none yet."""
        return self._application(must_exist=False)

    def _application(self, *, must_exist: bool) -> Bide:
        from bide.runtime import Bide

        if not must_exist:
            self.missing = "make"
        loaded = self.loaded
        app = loaded.app
        if app is None:
            store = loaded.store or self._open(must_exist=must_exist)
            app = Bide(store, loaded.compiled())
        self.__dict__["app"] = self.__dict__["new_app"] = app
        return app

    @property
    def store(self) -> Store:
        """The store."""
        return self.app.store

    @property
    def now(self) -> datetime:
        """The present moment, by the clock of the store."""
        from bide.runtime.views import moment

        now = moment(self.store.clock.now())
        assert now is not None
        return now

    @property
    def url(self) -> str:
        """Which database is meant, when no application has its own."""
        return self.place.store or self.settled.store or DEFAULT_STORE

    def _open(self, *, must_exist: bool) -> Store:
        from bide.store import Store

        if must_exist:
            self.check_exists()
        store = Store.open(self.url, schema=self.place.schema or self.settled.schema)
        self._opened.append(store)
        return store

    def check_exists(self) -> None:
        """Refuse to make an empty database where somebody only looked into the wrong folder."""
        from bide.store.opening import is_postgres, path_of

        path = ":memory:" if is_postgres(self.url) else path_of(self.url)
        if path != ":memory:" and not os.path.exists(path):
            raise CliError(
                f"There is no database {path!r} in {os.getcwd()!r}. Say which one is meant with --store or BIDE_STORE, "
                f"or name an application that knows with --app or BIDE_APP.",
                Exit.UNAVAILABLE,
                hints=("bide … --store sqlite:///path/to/bide.db", "bide migrate   (makes one)"),
            )

    def graph(self, name: str) -> CompiledGraph:
        """Return a graph by its name."""
        found = self.app.graphs.find(name)
        if found is None:
            raise self.unknown_graph(name)
        return found

    def graph_of(self, thread_id: str) -> CompiledGraph:
        """Return the graph of a thread."""
        return self.graph(self.app.get(thread_id).graph)

    def need_graphs(self, what: str) -> None:
        """Refuse a command that cannot do without somebody's graphs."""
        if not self.places:
            raise CliError(
                f"{what} needs your graphs. Say where they are: --app shop.py:app, or once and for all "
                f"export BIDE_APP=shop.py:app, or in a bide.toml. It may name a Bide application, a compiled graph, or "
                f"a list of them.",
                Exit.USAGE,
                hints=("bide … --app shop.py:app",),
            )

    def unknown_graph(self, name: str) -> CliError:
        """Say that there is no such graph, and which there are."""
        from bide.errors import did_you_mean

        known = [one.name for one in self.app.graphs]
        hint = did_you_mean(name, known)
        listed = ", ".join(known) or "none"
        if not self.loaded.is_given:
            return CliError(
                f"The code of graph {name!r} is needed for this. Say where it is: --app shop.py:app, or "
                f"export BIDE_APP=shop.py:app.",
                Exit.USAGE,
                hints=("bide … --app shop.py:app",),
            )
        return CliError(f"There is no graph {name!r} in {self.place.app}.{hint} Known: {listed}.", Exit.NOT_FOUND)

    # ── Ending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def telling_errors(self) -> Iterator[None]:
        """Turn errors into words and exit codes, and close what was opened."""
        try:
            yield
        except (BideError, CliError) as problem:
            self._tell_error(problem)
            raise typer.Exit(int(code_of(problem))) from None
        except KeyboardInterrupt:
            self.note("\nstopped")
            raise typer.Exit(int(Exit.INTERRUPTED)) from None
        except BrokenPipeError:
            # Whoever read has seen enough, as in `bide threads | head`. Nothing more can be said.
            _forget_output()
            raise typer.Exit(int(Exit.OK)) from None
        finally:
            self.close()

    def _tell_error(self, problem: Exception) -> None:
        if self.as_json:
            sys.stderr.write(json.dumps(document_of(problem, self.known), ensure_ascii=False, indent=2) + "\n")
            return
        from rich.text import Text

        from bide.cli.marks import FAILED, NEXT
        from bide.cli.tables import aligned
        from bide.cli.words import safe

        self.err.print(Text.assemble((f"{FAILED} ", "bold red"), safe(problem)))
        for hint in hints_of(problem, self.known):
            self.err.print(aligned([[Text(NEXT, style="dim"), Text(safe(hint), style="bold")]], indent=2))

    def close(self) -> None:
        """Let go of the stores."""
        while self._opened:
            with suppress(BideError):
                self._opened.pop().close()


def _console(stream: Any) -> Console:
    """Write to a stream: in colour and to its width when it is a terminal, plain and uncut when it is not."""
    from rich.console import Console

    class Piped(Console):
        """Lets us say what it means when a reader has gone."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    with suppress(AttributeError, ValueError, OSError):
        stream.reconfigure(errors="replace")  # an ASCII terminal shows ? for an arrow and goes on
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else ENDLESS
    return Piped(file=stream, width=width, markup=False, highlight=False, emoji=False)


def _forget_output() -> None:
    """Let what is still to be printed go nowhere, so that the end of the process does not stumble over it."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
