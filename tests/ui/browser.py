"""Chromium for the tests, and signed-in pages that record console errors."""

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
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Response,
    sync_playwright,
)
from tests.support.server_process import TOKEN, ServerProcess

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


def chromium_path() -> str:
    """Path of Chromium, unpacked once under a lock."""
    directory = UI / "node_modules" / ".chromium"
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        completed = subprocess.run(
            ["node", "chromium.mjs"],
            cwd=UI,
            env={**os.environ, "TMPDIR": str(directory), "PATH": _search_path()},
            check=True,
            capture_output=True,
            text=True,
        )
    return completed.stdout.strip()


def _search_path() -> str:
    """PATH with the virtual environment first, which may bring its own Node."""
    return os.pathsep.join((str(File(sys.executable).parent), os.environ.get("PATH", "")))


class BrowserDriver:
    """One browser for all tests of a process.

    Playwright's event loop stays suspended in this thread. It is registered as the running loop
    only while the browser is in use: otherwise no other test could run an event loop.
    """

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._loop = asyncio.get_running_loop()
        self._browser = _launch(playwright)

    @contextmanager
    def use(self) -> Iterator[Browser]:
        asyncio._set_running_loop(self._loop)
        try:
            if not self._browser.is_connected():
                self._browser = _launch(self._playwright)
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    @contextmanager
    def suspended(self) -> Iterator[BrowserDriver]:
        """Unregister the loop inside the block; close the browser at its end."""
        asyncio._set_running_loop(None)
        try:
            yield self
        finally:
            asyncio._set_running_loop(self._loop)
            self._browser.close()


@contextmanager
def start_browser() -> Iterator[BrowserDriver]:
    with sync_playwright() as playwright, BrowserDriver(playwright).suspended() as driver:
        yield driver


def _launch(playwright: Playwright) -> Browser:
    """Launch Chromium; three attempts, since it sometimes crashes at startup."""
    path = chromium_path()
    for _ in range(2):
        with suppress(Error):
            return playwright.chromium.launch(executable_path=path, args=list(_ARGS))
    return playwright.chromium.launch(executable_path=path, args=list(_ARGS))


AXE_OPTIONS = '{ resultTypes: ["violations"] }'
"""Only violations: reporting passed elements takes most of axe's time."""
BUSY_WARNING = "Measure loop restarted more than 5 times"
"""Warning of the editor on a busy machine."""


@dataclass
class SignedInPage:
    """A page of a signed-in user, in a browser context of its own."""

    page: Page
    context: BrowserContext
    url: str
    errors: list[str] = field(default_factory=list)
    expected_statuses: set[int] = field(default_factory=set)
    """HTTP statuses that the test provokes, which the browser logs as errors."""

    def visit(self, path: str) -> None:
        self.page.goto(self.url + path)

    @contextmanager
    def recording_errors(self) -> Iterator[None]:
        """Collect page errors, and console errors and warnings, in `errors`."""
        self.page.on("pageerror", self._add_page_error)
        self.page.on("console", self._add_message)
        try:
            yield
        finally:
            self.page.remove_listener("pageerror", self._add_page_error)
            self.page.remove_listener("console", self._add_message)

    def _add_page_error(self, error: Error) -> None:
        self.errors.append(f"page error: {error}")

    def _add_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._add_error(message.text)

    def _add_error(self, text: str) -> None:
        if text == BUSY_WARNING or any(
            f"status of {status} " in text for status in self.expected_statuses
        ):
            return
        self.errors.append(text)

    def check_accessibility(self) -> None:
        """Fail if axe finds a serious or critical violation."""
        if self.page.evaluate("typeof axe") == "undefined":
            self.page.evaluate(AXE.read_text("utf-8"))
        violations = self.page.evaluate(
            f"async () => (await axe.run(document, {AXE_OPTIONS})).violations"
        )
        failures = [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in violations
            if violation["impact"] in {"serious", "critical"}
            for node in violation["nodes"]
        ]
        assert not failures, "\n".join(failures)


@contextmanager
def wait_for_response(page: Page, method: str, path: str) -> Iterator[None]:
    """Wait at the end of the block for the successful response to a request made in it.

    Texts of a screen may be there before the response. Refusals are ignored, since the page may
    repeat the request.
    """

    def is_match(response: Response) -> bool:
        request = response.request
        return request.method == method and path in urlsplit(response.url).path and response.ok

    with page.expect_response(is_match):
        yield


def wait_for_clipboard(page: Page, text: str) -> None:
    """Wait until the clipboard contains `text`; it is written some time after the click."""
    page.wait_for_function("async text => await navigator.clipboard.readText() === text", arg=text)


@contextmanager
def sign_in(
    browser: Browser,
    live_server: ServerProcess,
    token: str = TOKEN,
    size: tuple[int, int] = WIDE,
    *,
    dark: bool = False,
    link: bool = False,
) -> Iterator[SignedInPage]:
    """A page signed in with a token (the owner's by default) or with the one-time link."""
    code = live_server.link.partition("#code=")[2] if link else ""
    body = {"code": code} if link else {"token": token}
    with _page(browser, PageOptions(live_server.url, size, dark)) as page:
        context = page.context
        response = context.request.post("/v1/session", data=body, headers={"X-Carrel-Csrf": "1"})
        assert response.ok, response.text()
        user = SignedInPage(page, context, live_server.url)
        with user.recording_errors():
            yield user


class PageOptions(NamedTuple):
    server_url: str
    size: tuple[int, int]
    is_dark: bool


_unused_pages: Final[WeakKeyDictionary[Browser, dict[PageOptions, list[Page]]]] = (
    WeakKeyDictionary()
)


@contextmanager
def _page(browser: Browser, options: PageOptions) -> Iterator[Page]:
    """A page without cookies and stored data.

    Pages are used again: a new one starts a process, which doubles the cost of a test. After a
    failed test its page is closed.
    """
    unused = _unused_pages.setdefault(browser, {}).setdefault(options, [])
    page = unused.pop() if unused else _new_page(browser, options)
    try:
        yield page
    except BaseException:
        page.context.close()
        raise
    _reset(page, options)
    unused.append(page)


def _new_page(browser: Browser, options: PageOptions) -> Page:
    width, height = options.size
    context = browser.new_context(
        base_url=options.server_url,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        color_scheme="dark" if options.is_dark else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(30_000)
    return context.new_page()


def _reset(page: Page, options: PageOptions) -> None:
    page.unroute_all()
    page.set_viewport_size({"width": options.size[0], "height": options.size[1]})
    for other in page.context.pages:
        if other is not page:
            other.close()
    if page.url.startswith(options.server_url):
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.goto("about:blank")
    page.context.clear_cookies()
