"""Helpers for the file editor: open a file, edit it, save it, read what is stored."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect
from tests.ui.browser import SignedInPage, wait_for_response
from tests.ui.conftest import ApiSetup


def open_file(user: SignedInPage, agent: Any, path: str = "", panel: str = "") -> Page:
    query = f"?file={path}" if path else ""
    user.visit(f"/agents/{agent['id']}/workspace{query}{panel and f'&panel={panel}'}")
    return user.page


def tree_item(page: Page, name: str) -> Locator:
    return page.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)}"))


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^Text of"))


def replace_text(page: Page, text: str) -> None:
    """Replace the whole text of the editor."""
    editor(page).click()
    page.keyboard.press("ControlOrMeta+a")
    type_text(page, text)


def type_text(page: Page, text: str) -> None:
    """Type at the cursor; wait until the page has noticed the edit."""
    page.keyboard.insert_text(text)
    expect(page.get_by_text("Unsaved changes")).to_be_visible()


def save_file(page: Page) -> None:
    """Save with the keyboard; wait until the text is stored and the page says so."""
    with wait_for_response(page, "PUT", "/files/"):
        page.keyboard.press("ControlOrMeta+s")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()


def read_stored(api_setup: ApiSetup, agent: Any, path: str) -> str:
    url = f"/v1/agents/{agent['id']}/files/{path}?raw=true"
    return str(api_setup.request("GET", url)["content"])
