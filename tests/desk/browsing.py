"""A real Chromium, and a page in it that minds what goes wrong behind the screen."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Playwright,
    Response,
    sync_playwright,
)
from tests.support.server_process import TOKEN, Live

UI: Final = File(__file__).resolve().parents[2] / "ui"
WIDE: Final = (1280, 800)
NARROW: Final = (390, 844)
_ARGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
AXE: Final = UI / "node_modules" / "axe-core" / "axe.min.js"


def chromium() -> str:
    """Where the browser lies, unpacked once for all who ask at the same time."""
    room = UI / "node_modules" / ".chromium"
    room.mkdir(exist_ok=True)
    with (room / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = subprocess.run(
            ["node", "chromium.mjs"],
            cwd=UI,
            env={**os.environ, "TMPDIR": str(room), "PATH": _path()},
            check=True,
            capture_output=True,
            text=True,
        )
    return told.stdout.strip()


def _path() -> str:
    """With what our own environment brings along, such as Node where the system has none."""
    return os.pathsep.join((str(File(sys.executable).parent), os.environ.get("PATH", "")))


class Chrome:
    """One browser for all tests of a process, which rests between those that use it.

    Its driver has an event loop that never ends, suspended wherever a test goes on. It is said to
    run only while the browser is in use: else no other test could run a loop of its own.
    """

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._loop = asyncio.get_running_loop()
        self._browser = _launched(playwright)

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        asyncio._set_running_loop(self._loop)
        try:
            if not self._browser.is_connected():
                self._browser = _launched(self._playwright)
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    @contextmanager
    def at_rest(self) -> Iterator[Chrome]:
        """For as long as there is a browser, and others have the thread."""
        asyncio._set_running_loop(None)
        try:
            yield self
        finally:
            asyncio._set_running_loop(self._loop)
            self._browser.close()


@contextmanager
def chrome() -> Iterator[Chrome]:
    with sync_playwright() as playwright, Chrome(playwright).at_rest() as resting:
        yield resting


def _launched(playwright: Playwright) -> Browser:
    """This Chromium breaks now and then while it starts: whoever starts it tries thrice."""
    where = chromium()
    for _ in range(2):
        with suppress(Error):
            return playwright.chromium.launch(executable_path=where, args=list(_ARGS))
    return playwright.chromium.launch(executable_path=where, args=list(_ARGS))


TOLD = '{ resultTypes: ["violations"] }'
"""Of what is well, axe need not tell where: that takes it most of its time."""
UNHURRIED = "Measure loop restarted more than 5 times"
"""What the editor says where a machine is so busy that the layout changes under it."""


@dataclass
class Seat:
    """A person at the desk, in a browser profile of their own."""

    page: Page
    context: BrowserContext
    url: str
    wrong: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)
    """Statuses that the test provokes, which the browser would report as errors."""

    def visit(self, path: str) -> None:
        self.page.goto(self.url + path)

    def minds(self) -> None:
        """Listens for whatever a user would never see: broken scripts, refused content."""
        self.page.on("pageerror", lambda error: self.wrong.append(f"page error: {error}"))
        self.page.on(
            "console",
            lambda said: self._heard(said.text) if said.type in {"error", "warning"} else None,
        )

    def _heard(self, text: str) -> None:
        if text == UNHURRIED or any(f"status of {status} " in text for status in self.expected):
            return
        self.wrong.append(text)

    def look_for_barriers(self) -> None:
        """Fails where axe finds something serious or critical on what is shown."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(f"async () => (await axe.run(document, {TOLD})).violations")
        grave = [
            f"{each['id']}: {node['html'][:200]}"
            for each in found
            if each["impact"] in {"serious", "critical"}
            for node in each["nodes"]
        ]
        assert not grave, "\n".join(grave)


@contextmanager
def answered(page: Page, method: str, path: str) -> Iterator[None]:
    """Leaves the block once the server has done what the page asks for within it: what a screen
    shows may stand there before. A refusal is not waited for, since the page may ask again."""

    def is_it(answer: Response) -> bool:
        asked = answer.request.method == method and path in urlsplit(answer.url).path
        return asked and answer.ok

    with page.expect_response(is_it):
        yield


def wait_for_copied(page: Page, text: str) -> None:
    """The clipboard is written after the click, and nothing that a reader hears tells when."""
    page.wait_for_function("async text => await navigator.clipboard.readText() === text", arg=text)


@contextmanager
def seated(
    browser: Browser,
    live: Live,
    token: str = TOKEN,
    size: tuple[int, int] = WIDE,
    *,
    dark: bool = False,
    link: bool = False,
) -> Iterator[Seat]:
    """Somebody signed in by their token, the owner if none is given; or by the terminal's link."""
    width, height = size
    context = browser.new_context(
        base_url=live.url,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        color_scheme="dark" if dark else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(30_000)
    body = {"code": live.welcome.partition("#code=")[2].split()[0]} if link else {"token": token}
    answer = context.request.post("/v1/session", data=body, headers={"X-Carrel-Csrf": "1"})
    assert answer.ok, answer.text()
    seat = Seat(context.new_page(), context, live.url)
    seat.minds()
    try:
        yield seat
    finally:
        context.close()
