"""Ten thousand agents on a real server: listed, scrolled through, and one of them found."""

from __future__ import annotations

import re
import statistics
from pathlib import Path as File

from bench.crowd import fill
from playwright.sync_api import Browser, expect
from tests.conftest import run
from tests.desk.browsing import seated
from tests.support.server_process import serving

MANY = 10_000
FRAMES = """async () => {
  const box = document.querySelector('.agents-scroll');
  box.scrollTop = 0;
  const gaps = [];
  let last = performance.now();
  for (let at = 0; at < 120; at += 1) {
    box.scrollTop += 700;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}"""


def test_ten_thousand_agents_scroll_smoothly_and_one_is_found(
    chrome: Browser, tmp_path: File
) -> None:
    run(fill(tmp_path, MANY, lambda _: None))
    with serving(tmp_path) as live, seated(chrome, live, link=True) as someone:
        page = someone.page
        someone.visit("/agents")
        table = page.get_by_role("table", name="Agents")
        shown = re.compile(rf"^{MANY + 101}$")
        expect(table).to_have_attribute("aria-rowcount", shown, timeout=60_000)
        assert page.get_by_role("row").count() < 60
        medians: list[float] = []
        while len(medians) < 6 and min(medians, default=50) >= 50:
            gaps = page.evaluate(FRAMES)
            medians.append(statistics.median(gaps))
            slow = sum(gap > 50 for gap in gaps)
            print(f"frames: median {medians[-1]:.0f} ms, over 50 ms: {slow} of {len(gaps)}")
        # Whatever else the machine does only adds to it: the calmest of six is what it takes.
        assert min(medians) < 50, medians
        page.get_by_role("searchbox", name=re.compile("^Find an agent")).fill("agent 7654")
        expect(page.get_by_role("link", name="Agent 7654", exact=True)).to_be_visible()
        expect(table).to_have_attribute("aria-rowcount", "2")
        assert not someone.wrong
