"""An agent's workspace in the browser: opening a file, its line in the tree, writing over it."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect
from tests.desk.browsing import Seat, answered
from tests.desk.conftest import Office


def opened(someone: Seat, agent: Any, path: str = "", panel: str = "") -> Page:
    query = f"?file={path}" if path else ""
    someone.visit(f"/agents/{agent['id']}/workspace{query}{panel and f'&panel={panel}'}")
    return someone.page


def line(page: Page, name: str) -> Locator:
    return page.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)}"))


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^Text of"))


def write_over(page: Page, text: str) -> None:
    """Types over whatever is in the editor."""
    editor(page).click()
    page.keyboard.press("ControlOrMeta+a")
    type_in(page, text)


def type_in(page: Page, text: str) -> None:
    """Types where the cursor is. Before the page knows of it, there is nothing to save or lose."""
    page.keyboard.insert_text(text)
    expect(page.get_by_text("Unsaved changes")).to_be_visible()


def save(page: Page) -> None:
    """Presses the key that saves, until the text is stored and the page says so."""
    with answered(page, "PUT", "/files/"):
        page.keyboard.press("ControlOrMeta+s")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()


def stored(office: Office, agent: Any, path: str) -> str:
    return str(office.ask("GET", f"/v1/agents/{agent['id']}/files/{path}?raw=true")["content"])
