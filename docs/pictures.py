"""Take screenshots of the console with the demo data: `make pictures`."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import Final

ROOT: Final = File(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page, Playwright, sync_playwright  # noqa: E402
from tests.ui.browser import chromium_path  # noqa: E402

OUT: Final = ROOT / "docs" / "images"
WIDE: Final = (1280, 800)
NARROW: Final = (390, 844)


@contextmanager
def demo() -> Iterator[str]:
    """Sign-in link of a server with the demo data."""
    with tempfile.TemporaryDirectory() as folder:
        carrel = str(File(sys.executable).parent / "carrel")
        command = [carrel, "serve", "--demo", "--data", folder, "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout
            file = next(match[1] for line in process.stdout if (match := _LINK_FILE.search(line)))
            yield File(file).read_text().strip()
        finally:
            process.terminate()
            process.wait()


_LINK_FILE: Final = re.compile(r"^Sign-in link +in (\S+)")


def sign_in(browser: Browser, link: str, size: tuple[int, int], theme: str) -> Page:
    """A page that is signed in by the link."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=2 if size == NARROW else 1.5,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(link)
    page.get_by_role("heading", name="Agents").wait_for()
    return page


def take_screenshots(playwright: Playwright, link: str) -> None:
    browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
    page = sign_in(browser, link, WIDE, "light")
    root = link.partition("/sign-in")[0]
    for name, path, ready in SCREENSHOTS:
        take_screenshot(page, root + path, ready, name)
    session = page.context.storage_state()
    for suffix, size, theme in (("dark", WIDE, "dark"), ("narrow", NARROW, "light")):
        width, height = size
        context = browser.new_context(
            storage_state=session,
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            device_scale_factor=1.5,
            reduced_motion="reduce",
        )
        page = context.new_page()
        name, path, ready = SCREENSHOTS[1]
        take_screenshot(page, root + path, ready, f"{name}-{suffix}")
    browser.close()


def take_screenshot(page: Page, address: str, ready: str, name: str) -> None:
    page.goto(address)
    page.locator(ready).first.wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=OUT / f"console-{name}.png")
    print(f"docs/images/console-{name}.png")


SCREENSHOTS: Final = [
    ("agents", "/agents", "main tbody tr, main [role=row]"),
    ("workspace", "/agents/otto/workspace?file=SOUL.md", "main .markdown p"),
    ("review", "/agent-templates/support/review?file=GUARDRAILS.md", "main .cm-editor"),
    ("prompt", "/agents/otto/prompt", "main table"),
    ("memory", "/agents/otto/memory", "main table"),
    ("template", "/agent-templates/support?file=GUARDRAILS.md", "main .cm-editor"),
    ("inbox", "/inbox?all", "main h2"),
    ("approvals", "/approvals", "main h1"),
    ("policy", "/settings/policy", "main h2"),
]


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    with demo() as link, sync_playwright() as playwright:
        take_screenshots(playwright, link)
