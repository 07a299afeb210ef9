"""A real browser before a real server in a process of its own. A machine without Chromium fails: what is skipped is
not proven."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bide import Bide
from tests.repo.source_files import ROOT
from tests.server.browser.served import order
from tests.server.pages.desk import graphs
from tools.needs import find_chromium

# No sandbox: tests run as root. The rest keeps it from calling home.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


# For one file at a time: as long as Playwright is there, its event loop runs in this thread.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    found = find_chromium()
    assert found, "There is no Chromium here: `python3 dev.py test` installs it, or `apt-get install chromium`."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


class Site:
    """The server, which can be killed and started again, and its database as another process sees it."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "bide.db"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.app = Bide(f"sqlite:///{self.database}", [*graphs(), order()])

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.server.browser.served", str(self.database), str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def tidy(self) -> None:
        """Let the next test find nothing of this one; a process takes longer to begin than most tests."""
        for thread in self.app.list(most=1000):
            self.app.store.delete_thread(thread.thread_id)
        if not self.is_running:
            self.start()

    def ask(self, graph: str, thread_id: str) -> str:
        """Let the server's worker bring a thread to its question; return the id of the wait."""
        self.app.start(graph, {}, thread_id=thread_id)
        list(self.app.follow(thread_id, until="rest"))
        return self.app.waits(thread_id=thread_id)[0].id

    def answer_of(self, thread_id: str) -> object:
        """What came of a thread, once it has ended."""
        list(self.app.follow(thread_id))
        return self.app.get(thread_id).values.get("answer")


@pytest.fixture(scope="module")
def only_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.start()
    yield made
    made.kill()
    made.app.close()


@pytest.fixture
def site(only_site: Site) -> Iterator[Site]:
    yield only_site
    only_site.tidy()


@pytest.fixture
def context(chromium: Browser, site: Site) -> Iterator[BrowserContext]:
    opened = chromium.new_context(base_url=site.url, viewport={"width": 1200, "height": 900})
    opened.set_default_timeout(30_000)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
