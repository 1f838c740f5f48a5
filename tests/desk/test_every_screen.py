"""Every screen, with the demo's data: whole and readable, wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.desk.browsing import NARROW, WIDE, Seat, seated
from tests.support.server_process import TOKEN, Live, serving

FIRST_LOAD = 250 * 1024


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(tmp_path_factory.mktemp("company"), arguments=("--demo",)) as live:
        yield live


@pytest.fixture(scope="module")
def screens(company: Live) -> list[str]:
    """The address of every screen, with something to show on each."""
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=company.url, headers=head, timeout=30) as http:

        def first(path: str, items: str = "items") -> Any:
            return http.get(path).raise_for_status().json()[items][0]

        otto = http.get("/v1/agents/otto").raise_for_status().json()["id"]
        iris = http.get("/v1/agents/iris").raise_for_status().json()["id"]
        session = first(f"/v1/agents/{iris}/sessions")["id"]
        sandbox = first("/accounts/me/sandboxes", "sandboxes")["sandboxId"]
        workspace = first("/accounts/me/workspaces", "workspaces")["workspaceId"]
        approval, run = first("/v1/approvals")["id"], first("/v1/runs")["runId"]
        webhook = first("/v1/webhooks")["id"]
    own = ("prompt", "runs", "sessions", "memory", "items", "settings")
    return [
        "/agents",
        "/inbox",
        "/inbox?all",
        f"/agents/{otto}/workspace?file=SOUL.md",
        f"/agents/{otto}/workspace?file=GUARDRAILS.md&panel=history",
        f"/agents/{otto}/workspace?file=GUARDRAILS.md&panel=explain",
        *(f"/agents/{otto}/{screen}" for screen in own),
        f"/agents/{iris}/sessions/{session}",
        "/agent-templates",
        "/agent-templates/support?file=GUARDRAILS.md",
        "/agent-templates/support/review?file=GUARDRAILS.md",
        "/agent-templates/defaults?file=SOUL.md",
        "/runs",
        f"/runs/{run}",
        "/approvals",
        f"/approvals/{approval}",
        "/workspaces",
        f"/workspaces/{workspace}",
        "/sandboxes",
        f"/sandboxes/{sandbox}",
        "/items",
        *(f"/settings/{tab}" for tab in ("people", "keys", "policy", "secrets", "webhooks")),
        f"/settings/webhooks/{webhook}",
        "/settings/audit",
        "/search?q=refund",
        "/search/nowhere",
    ]


def settle(seat: Seat) -> None:
    """Until a heading stands and nothing more is on its way."""
    expect(seat.page.get_by_role("heading").first).to_be_visible()
    expect(seat.page.locator(".loading")).to_have_count(0)


@pytest.mark.parametrize(("size", "dark"), [(WIDE, False), (NARROW, True)])
def test_no_screen_has_a_barrier_a_broken_part_or_a_sideways_scroll(
    chrome: Browser, company: Live, screens: list[str], size: tuple[int, int], dark: bool
) -> None:
    wrong: list[str] = []
    with seated(chrome, company, size=size, dark=dark) as someone:
        for screen in screens:
            someone.visit(screen)
            settle(someone)
            try:
                someone.look_for_barriers()
            except AssertionError as barrier:
                wrong.append(f"{screen}: {barrier}")
            if (width := someone.page.evaluate("document.documentElement.scrollWidth")) > size[0]:
                wrong.append(f"{screen}: is {width} wide")
            wrong += [f"{screen}: {each}" for each in someone.wrong]
            someone.wrong.clear()
    assert not wrong, "\n".join(wrong)


def test_what_is_loaded_first_is_small_and_the_editor_comes_when_it_is_needed(
    chrome: Browser, company: Live
) -> None:
    scripts = """() => performance.getEntriesByType("resource")
      .filter(({name}) => name.endsWith(".js"))
      .reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0)"""
    with seated(chrome, company) as someone:
        someone.visit("/agents")
        settle(someone)
        first = someone.page.evaluate(scripts)
        print(f"scripts of the first load: {first / 1024:.0f} KB")
        assert 0 < first < FIRST_LOAD
        someone.page.goto(f"{company.url}/agents/otto/workspace?file=SOUL.md")
        expect(someone.page.locator(".cm-editor")).to_be_visible()
        assert someone.page.evaluate(scripts) > first
