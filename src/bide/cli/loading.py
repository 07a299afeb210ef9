"""Where graphs come from: `shop.py:app` or `module:name`, after `--app`, in a `bide.toml`, or behind `bide serve`.

What goes wrong in somebody's own file is told as theirs, with their line, and without a page of ours around it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bide.cli.exits import CliError, Exit, code_of
from bide.errors import did_you_mean

if TYPE_CHECKING:
    from bide.graph.compiled import CompiledGraph
    from bide.runtime import Bide
    from bide.store import Store

LONGEST_LINE = 100
EXAMPLES = "Name a file and what is in it, as in shop.py:app, or a module, as in shop.agents:app."


@dataclass(frozen=True)
class Loaded:
    """What `--app` brought: an application, or graphs."""

    app: Bide | None = None
    graphs: dict[str, CompiledGraph] = field(default_factory=dict)
    is_given: bool = False

    @property
    def store(self) -> Store | None:
        """The store that the graphs were compiled with, if they were."""
        return next((graph.store for graph in self.graphs.values() if graph.store is not None), None)

    def compiled(self) -> list[CompiledGraph]:
        """Return the graphs, without an application around them."""
        return list(self.graphs.values())


def load(place: str) -> Loaded:
    """Import what a place names, and find the application or the graphs in it."""
    source, _, name = place.rpartition(":") if ":" in place else (place, "", "")
    if not source:
        raise CliError(f"{place!r} says neither a file nor a module. {EXAMPLES}", Exit.USAGE)
    module = _import(source)
    found = _named(module, source, name) if name else _only_one(module, source)
    if inspect.isroutine(found):
        found = _called(found, source, place)
    from bide.runtime import Bide

    if isinstance(found, Bide):
        return Loaded(app=found, is_given=True)
    graphs = {graph.name: graph for graph in _graphs(found, name, place)}
    if not graphs:
        raise CliError(f"{place} holds no graphs. {EXAMPLES}", Exit.USAGE)
    return Loaded(graphs=graphs, is_given=True)


def load_all(places: Sequence[str]) -> Loaded:
    """Import what several places name: graphs from each, or one application."""
    if len(places) == 1:
        return load(places[0])
    graphs: dict[str, CompiledGraph] = {}
    for place in places:
        loaded = load(place)
        if loaded.app is not None:
            raise CliError(
                f"{place} is an application, which has its own graphs and store. Name it alone, or graphs alone.",
                Exit.USAGE,
            )
        twice = graphs.keys() & loaded.graphs.keys()
        if twice:
            raise CliError(
                f"Two graphs are named {min(twice)!r}, the second in {place}. Name them when compiling: "
                f"compile(name='…').",
                Exit.USAGE,
            )
        graphs |= loaded.graphs
    return Loaded(graphs=graphs, is_given=True)


# ── Importing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _import(source: str) -> ModuleType:
    """Import a file or a module. Whatever it prints goes to stderr: stdout belongs to the command."""
    is_file = _is_file(source)
    if is_file and not Path(source).is_file():
        meant = did_you_mean(source, [one.name for one in Path().glob("*.py")])
        raise CliError(f"There is no file {source!r} in {os.getcwd()!r}.{meant} {EXAMPLES}", Exit.USAGE)
    folder = _folder_of(source)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        path = Path(source).resolve()
        with redirect_stdout(sys.stderr), chdir(folder):
            return _from_file(path) if is_file else importlib.import_module(source)
    except CliError:
        raise
    except ModuleNotFoundError as problem:
        if problem.name is not None and (source == problem.name or source.startswith(f"{problem.name}.")):
            raise CliError(f"There is no module {source!r}, seen from {folder!r}. {EXAMPLES}", Exit.USAGE) from None
        raise _theirs(source, problem) from problem
    except (Exception, SystemExit) as problem:
        raise _theirs(source, problem) from problem


def _is_file(source: str) -> bool:
    return source.endswith(".py") or os.sep in source


def _folder_of(source: str) -> str:
    """Return where a file is loaded: beside it, so that `sqlite:///shop.db` in it is one file, wherever one stands."""
    return str(Path(source).resolve().parent) if _is_file(source) else os.getcwd()


def _called(make: Callable[..., Any], source: str, place: str) -> Any:
    """Call a function that makes an application, and return what it made."""
    needed = [
        one.name
        for one in inspect.signature(make).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed or inspect.iscoroutinefunction(make):
        why = f"it wants {', '.join(needed)}" if needed else "it is async"
        raise CliError(
            f"{place} is a function that cannot be called without arguments: {why}. Name an application, a graph, or "
            f"a function without arguments that returns one.",
            Exit.USAGE,
        )
    try:
        with redirect_stdout(sys.stderr), chdir(_folder_of(source)):
            return make()
    except CliError:
        raise
    except (Exception, SystemExit) as problem:
        raise _theirs(source, problem) from problem


def _from_file(path: Path) -> ModuleType:
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    # Under its own name, as `import shop` would: unless something else has that name already.
    name = path.stem if known is None else f"bide_app_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a file that is there has a spec"
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _theirs(source: str, problem: BaseException) -> CliError:
    """Tell an error of somebody's own code: where it is, the line itself, and what it says."""
    where, text = _line_of(problem)
    kind, message = type(problem).__name__, str(problem)
    if isinstance(problem, SyntaxError):
        message = problem.msg
    if isinstance(problem, SystemExit):
        kind, message = "sys.exit()", "it ended the program while it was being loaded"
    shown = f"\n    {text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + '…'}" if text else ""
    advice = "It is not installed here, or is misspelt." if isinstance(problem, ModuleNotFoundError) else ""
    code = code_of(problem) if isinstance(problem, Exception) else Exit.FAILED
    return CliError(f"{source} could not be loaded. {where}:{shown}\n{kind}: {message} {advice}".rstrip(), code)


def _line_of(problem: BaseException) -> tuple[str, str]:
    """Find the innermost line that is neither ours nor Python's own."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{_near(problem.filename)}, line {problem.lineno}", (problem.text or "").strip()
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if not _is_machinery(frame.filename)]
    if not frames:
        return "While it was imported", ""
    return f"{_near(frames[-1].filename)}, line {frames[-1].lineno}", (frames[-1].line or "").strip()


_OURS = str(Path(__file__).resolve().parents[1])
_PYTHONS = os.path.dirname(os.__file__)


def _is_machinery(filename: str) -> bool:
    return filename.startswith(("<frozen", _OURS + os.sep)) or (
        filename.startswith(_PYTHONS + os.sep) and "site-packages" not in filename
    )


def _near(filename: str) -> str:
    """Name a file as somebody in this folder would."""
    near = os.path.relpath(filename)
    return filename if near.startswith("..") else near


# ── Finding ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _named(module: ModuleType, source: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            usable = [one for one, value in vars(module).items() if _is_usable(value)]
            listed = f" Usable there: {', '.join(usable)}." if usable else ""
            raise CliError(f"{source} has no {name!r}.{did_you_mean(name, usable)}{listed}", Exit.USAGE)
        found = getattr(found, part)
    return found


def _only_one(module: ModuleType, source: str) -> Any:
    """Find what is meant where only a file was named: its application, or else its only graph."""
    from bide.runtime import Bide

    usable = {name: value for name, value in vars(module).items() if _is_usable(value)}
    apps = {name: value for name, value in usable.items() if isinstance(value, Bide)}
    chosen = list({id(value): value for value in (apps or usable).values()}.values())
    if len(chosen) == 1:
        return chosen[0]
    if not usable:
        raise CliError(
            f"{source} holds neither a Bide application nor a graph. Keep one in a variable there, such as "
            f"app = Bide(store, [graph]), or name a function that returns one, as in {source}:make.",
            Exit.USAGE,
        )
    names = ", ".join(f"{source}:{name}" for name in apps or usable)
    raise CliError(f"{source} holds several. Say which: {names}.", Exit.USAGE)


def _is_usable(value: Any) -> bool:
    from bide.graph.compiled import CompiledGraph
    from bide.graph.state import StateGraph
    from bide.runtime import Bide

    return isinstance(value, Bide | CompiledGraph | StateGraph)


def _graphs(found: Any, name: str, place: str) -> Iterable[CompiledGraph]:
    """Return the graphs in what was named; builders are compiled under the name that they have there."""
    if isinstance(found, Mapping):
        return [_graph(value, str(key), place) for key, value in found.items()]
    if isinstance(found, list | tuple | set | frozenset):
        return [_graph(value, "", place) for value in found]
    return [_graph(found, name, place)]


def _graph(found: Any, name: str, place: str) -> CompiledGraph:
    from bide.graph.compiled import CompiledGraph
    from bide.graph.state import StateGraph

    if isinstance(found, StateGraph):
        return found.compile(name=name) if name else found.compile()
    if isinstance(found, CompiledGraph):
        return found
    raise CliError(
        f"{place} is {type(found).__name__}, and no application and no graph. Name a Bide, a compiled graph, a "
        f"StateGraph, a list or dict of graphs, or a function without arguments that returns one of these.",
        Exit.USAGE,
    )
