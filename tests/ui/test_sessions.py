"""Sessions: list, search and transcripts."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.ui.browser import NARROW
from tests.ui.conftest import ApiSetup, OpenPage


def _session(api_setup: ApiSetup, agent: Any, *entries: tuple[str, str], **fields: str) -> str:
    sessions = f"/v1/agents/{agent['id']}/sessions"
    session = api_setup.request("POST", sessions, {"sourcePlugin": "telegram", **fields})
    for role, content in entries:
        api_setup.request(
            "POST", f"{sessions}/{session['id']}/entries", {"role": role, "content": content}
        )
    return str(session["id"])


def test_a_transcript_shows_entries_search_failed_turns_and_download(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    long_answer = "It is taken care of. " * 300
    conversation = (
        ("system", "You speak with Ines."),
        ("user", "A table for four, please."),
        ("user", "Hello? <script>document.title = 'x'</script>"),
        ("tool", "corner place, 20:00"),
        ("assistant", long_answer),
        ("user", "Señora López comes too."),
    )
    session = _session(api_setup, agent, *conversation)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/sessions")
    expect(page.get_by_role("list", name="Sessions")).to_contain_text("6 entries, last")
    page.get_by_role("link", name="telegram").click()

    for number, (role, _) in enumerate(conversation, 1):
        expect(page.get_by_label(f"{role}, entry {number}")).to_be_visible()
    expect(page.get_by_label("user, entry 2")).to_contain_text("Turn failed")
    expect(page.get_by_label("user, entry 3")).to_contain_text("<script>document.title")
    expect(page.get_by_label("user, entry 6")).to_contain_text("Waiting for an answer")
    answer = page.get_by_label("assistant, entry 5")
    answer.get_by_role("button", name="Show all 6,300 characters").click()
    expect(answer).to_contain_text(long_answer.strip())
    answer.get_by_role("button", name="Show less").click()

    page.get_by_label("Search in this session").fill("lopez")
    expect(page.get_by_text("1 of 6 entries match.")).to_be_visible()
    expect(page.locator("mark")).to_have_text("López")
    page.get_by_label("Search in this session").fill("")

    entries = f"/v1/agents/{agent['id']}/sessions/{session}/entries"
    api_setup.request("POST", entries, {"role": "assistant", "content": "A table for five, then."})
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_label("assistant, entry 7")).to_be_visible()
    expect(page.get_by_text("Waiting for an answer")).to_have_count(0)

    with page.expect_download() as saved:
        page.get_by_role("link", name="JSONL").click()
    lines = saved.value.path().read_text("utf-8").splitlines()
    assert len(lines) == 8
    user.check_accessibility()


def test_a_tool_entry_shows_the_structured_result_of_its_item(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    session = _session(api_setup, agent)
    changed = [{"path": "a\u202e.txt", "version": 4, "change": "modified"}, "not a file"]
    result = {"exitCode": 0, "timedOut": True, "truncated": True, "durationMs": 61_500}
    structured = {**result, "outputFiles": [".carrel/output/x.txt"], "changed": changed}
    entries = f"/v1/agents/{agent['id']}/sessions/{session}/entries"
    for item in ({"structuredContent": structured}, {"structured": "none"}):
        body = {"role": "tool", "content": "done", "item": item}
        api_setup.request("POST", entries, body)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/sessions/{session}")
    first = page.get_by_label("tool, entry 1").get_by_role("region", name="Tool outcome")
    for text in (
        *("Timed outyes", "Exit code0", "Duration61.50 s", "Outputcut"),
        *("Output files.carrel/output/x.txt", "modified a␣.txt version 4"),
    ):
        expect(first).to_contain_text(text)
    expect(page.get_by_label("tool, entry 2")).to_contain_text("done")
    expect(page.get_by_label("tool, entry 2").get_by_role("region")).to_have_count(0)
    user.check_accessibility()


def test_search_across_sessions_links_to_the_entry(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    many = [("user", f"line {number}") for number in range(1, 205)]
    session = _session(api_setup, agent, *many, ("assistant", "The Museum opens at ten."))
    _session(api_setup, agent, ("user", "lunch"), sourcePlugin="slack", scope="shared")
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit(f"/agents/{agent['id']}/sessions")
    sessions = page.get_by_role("list", name="Sessions", exact=True)
    expect(sessions.get_by_role("link")).to_have_count(2)
    page.get_by_label("Scope").select_option("shared")
    expect(sessions.get_by_role("link")).to_have_text(["slack"])
    page.get_by_label("Scope").select_option("")
    page.get_by_label("Search sessions").fill("museum")
    matches = page.get_by_role("list", name="Matches")
    expect(matches.locator("mark")).to_have_text("Museum")
    assert page.evaluate("document.querySelector('#main').scrollWidth") <= NARROW[0]
    matches.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"{session}.*entry=205"))
    expect(page.get_by_label("assistant, entry 205")).to_be_in_viewport()


def test_an_agent_without_sessions_shows_an_empty_state(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Quiet")
    user = signed_in_page()
    user.visit(f"/agents/{agent['id']}/sessions")
    expect(user.page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    user.page.get_by_label("Search sessions").fill("x")
    expect(user.page.get_by_role("heading", name="No results")).to_be_visible()
