"""10,000 agents on a real server: list, scroll and filter."""

from __future__ import annotations

import re
from pathlib import Path as File

from bench.fleet import fill
from playwright.sync_api import Browser, expect
from tests.conftest import run
from tests.support.server_process import serving
from tests.ui.browser import sign_in

AGENT_COUNT = 10_000
MAX_RENDERED_ROWS = 60
SCROLL_SCRIPT = """async () => {
  const box = document.querySelector('.agents-scroll');
  const counts = [];
  for (let at = 0; at <= 10; at += 1) {
    box.scrollTop = box.scrollHeight * at / 10;
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    counts.push(document.querySelectorAll('.agents-scroll tr').length);
  }
  return counts;
}"""
"""Scrolls from the first row to the last and counts the rendered rows."""


def test_of_ten_thousand_agents_only_visible_rows_are_rendered(
    browser: Browser, tmp_path: File
) -> None:
    run(fill(tmp_path, AGENT_COUNT, lambda _: None))
    with serving(tmp_path) as live_server, sign_in(browser, live_server, link=True) as user:
        page = user.page
        user.visit("/agents")
        table = page.get_by_role("table", name="Agents")
        row_count = re.compile(rf"^{AGENT_COUNT + 101}$")
        expect(table).to_have_attribute("aria-rowcount", row_count, timeout=60_000)
        counts = page.evaluate(SCROLL_SCRIPT)
        assert 10 < min(counts) <= max(counts) < MAX_RENDERED_ROWS
        page.get_by_role("searchbox", name=re.compile("^Filter agents")).fill("agent 7654")
        expect(page.get_by_role("link", name="Agent 7654", exact=True)).to_be_visible()
        expect(table).to_have_attribute("aria-rowcount", "2")
        assert not user.errors
