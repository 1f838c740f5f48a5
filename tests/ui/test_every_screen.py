"""Every screen with the demo data: wide and narrow, light and dark."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.support.server_process import TOKEN, ServerProcess, serving
from tests.ui.browser import NARROW, WIDE, SignedInPage, sign_in

MAX_FIRST_LOAD_BYTES = 250 * 1024


@pytest.fixture(scope="module")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("demo"), arguments=("--demo",)) as live_server:
        yield live_server


@pytest.fixture(scope="module")
def screens(demo_server: ServerProcess) -> list[str]:
    """URLs of all screens, with their data."""
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=demo_server.url, headers=head, timeout=30) as http:

        def first(path: str, items: str = "items") -> Any:
            return http.get(path).raise_for_status().json()[items][0]

        otto = http.get("/v1/agents/otto").raise_for_status().json()["id"]
        iris = http.get("/v1/agents/iris").raise_for_status().json()["id"]
        session = first(f"/v1/agents/{iris}/sessions")["id"]
        sandbox = first("/accounts/me/sandboxes", "sandboxes")["sandboxId"]
        workspace = first("/accounts/me/workspaces", "workspaces")["workspaceId"]
        approval, run = first("/v1/approvals")["id"], first("/v1/runs")["runId"]
        webhook = first("/v1/webhooks")["id"]
    agent_tabs = ["prompt", "runs", "sessions", "memory", "skills", "items", "connect", "settings"]
    return [
        "/overview",
        "/agents",
        "/inbox",
        "/inbox?all",
        f"/agents/{otto}/workspace?file=SOUL.md",
        f"/agents/{otto}/workspace?file=GUARDRAILS.md&panel=history",
        f"/agents/{otto}/workspace?file=GUARDRAILS.md&panel=explain",
        *(f"/agents/{otto}/{screen}" for screen in agent_tabs),
        f"/agents/{iris}/sessions/{session}",
        "/agent-templates",
        "/agent-templates/support?file=GUARDRAILS.md",
        "/agent-templates/support/skills",
        "/agent-templates/support/review?file=GUARDRAILS.md",
        "/agent-templates/defaults?file=SOUL.md",
        "/agent-templates/defaults/review?file=GUARDRAILS.md",
        "/runs",
        f"/runs/{run}",
        *(f"/runs/{run}?view={view}" for view in ("why", "timeline")),
        f"/compare?left=run:{run}&right=agent:{otto}",
        "/compare",
        "/approvals",
        f"/approvals/{approval}",
        "/workspaces",
        f"/workspaces/{workspace}",
        "/sandboxes",
        f"/sandboxes/{sandbox}",
        "/items",
        *(
            f"/settings/{tab}"
            for tab in ("account", "people", "keys", "policy", "secrets", "webhooks")
        ),
        f"/settings/webhooks/{webhook}",
        "/settings/audit",
        "/search?q=refund",
        "/search/nowhere",
    ]


def wait_until_loaded(user: SignedInPage) -> None:
    """Wait until a heading is visible and nothing is loading."""
    expect(user.page.get_by_role("heading").first).to_be_visible()
    expect(user.page.locator(".loading")).to_have_count(0)


def follow_link(user: SignedInPage, path: str) -> None:
    """Show another screen without loading the page again, and wait until it sets its title."""
    user.page.evaluate(
        """path => {
          document.title = "leaving";
          history.pushState({idx: (history.state?.idx ?? 0) + 1, key: "test"}, "", path);
          dispatchEvent(new PopStateEvent("popstate", {state: history.state}));
        }""",
        path,
    )
    expect(user.page).not_to_have_title("leaving")


def violations(user: SignedInPage, width: int) -> Iterator[str]:
    """What is wrong with the current screen."""
    try:
        user.check_accessibility()
    except AssertionError as violation:
        yield str(violation)
    if (page_width := user.page.evaluate("document.documentElement.scrollWidth")) > width:
        yield f"is {page_width} wide"
    yield from user.errors
    user.errors.clear()


@pytest.mark.parametrize(("size", "dark"), [(WIDE, False), (NARROW, True)])
def test_no_screen_has_accessibility_violations_errors_or_horizontal_scroll(
    browser: Browser,
    demo_server: ServerProcess,
    screens: list[str],
    size: tuple[int, int],
    dark: bool,
) -> None:
    failures: list[str] = []
    with sign_in(browser, demo_server, size=size, dark=dark) as user:
        user.visit("/agents")
        for previous, screen in itertools.pairwise(["/agents", *screens]):
            is_beneath = screen.startswith(urlsplit(previous).path)
            user.visit(screen) if is_beneath else follow_link(user, screen)
            wait_until_loaded(user)
            failures += [f"{screen}: {text}" for text in violations(user, size[0])]
    assert not failures, "\n".join(failures)


def test_first_load_is_small_and_the_editor_is_loaded_on_demand(
    browser: Browser, demo_server: ServerProcess
) -> None:
    scripts = """() => performance.getEntriesByType("resource")
      .filter(({name}) => name.endsWith(".js"))
      .reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0)"""
    with sign_in(browser, demo_server) as user:
        user.visit("/agents")
        wait_until_loaded(user)
        first = user.page.evaluate(scripts)
        print(f"scripts of the first load: {first / 1024:.0f} KB")
        assert 0 < first < MAX_FIRST_LOAD_BYTES
        user.page.goto(f"{demo_server.url}/agents/otto/workspace?file=SOUL.md")
        expect(user.page.locator(".cm-editor")).to_be_visible()
        assert user.page.evaluate(scripts) > first
