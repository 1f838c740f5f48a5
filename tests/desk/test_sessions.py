"""Sessions: what was said, who said it, and where a word stands."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.desk.browsing import NARROW
from tests.desk.conftest import Office, Seating


def _session(office: Office, agent: Any, *said: tuple[str, str], **asked: str) -> str:
    sessions = f"/v1/agents/{agent['id']}/sessions"
    made = office.ask("POST", sessions, {"sourcePlugin": "telegram", **asked})
    for role, content in said:
        office.ask("POST", f"{sessions}/{made['id']}/entries", {"role": role, "content": content})
    return str(made["id"])


def test_a_transcript_reads_as_the_conversation_that_it_was(office: Office, seat: Seating) -> None:
    agent = office.agent("Ada")
    long = "It is taken care of. " * 300
    talk = (
        ("system", "You speak with Ines."),
        ("user", "A table for four, please."),
        ("user", "Hello? <script>document.title = 'x'</script>"),
        ("tool", "corner place, 20:00"),
        ("assistant", long),
        ("user", "Señora López comes too."),
    )
    session = _session(office, agent, *talk)
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/sessions")
    expect(page.get_by_role("list", name="Sessions")).to_contain_text("6 entries, last said")
    page.get_by_role("link", name="telegram").click()

    for number, (role, _) in enumerate(talk, 1):
        expect(page.get_by_label(f"{role}, entry {number}")).to_be_visible()
    expect(page.get_by_label("user, entry 2")).to_contain_text("The turn failed")
    expect(page.get_by_label("user, entry 3")).to_contain_text("<script>document.title")
    expect(page.get_by_label("user, entry 6")).to_contain_text("No answer yet.")
    answer = page.get_by_label("assistant, entry 5")
    answer.get_by_role("button", name="Show all 6,300 characters").click()
    expect(answer).to_contain_text(long.strip())
    answer.get_by_role("button", name="Show less").click()

    page.get_by_label("Search in this session").fill("lopez")
    expect(page.get_by_text("1 of 6 entries say that.")).to_be_visible()
    expect(page.locator("mark")).to_have_text("López")
    page.get_by_label("Search in this session").fill("")

    entries = f"/v1/agents/{agent['id']}/sessions/{session}/entries"
    office.ask("POST", entries, {"role": "assistant", "content": "A table for five, then."})
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_label("assistant, entry 7")).to_be_visible()
    expect(page.get_by_text("No answer yet.")).to_have_count(0)

    with page.expect_download() as saved:
        page.get_by_role("link", name="JSONL").click()
    lines = saved.value.path().read_text("utf-8").splitlines()
    assert len(lines) == 8
    someone.look_for_barriers()


def test_what_was_said_is_found_across_sessions_and_leads_to_the_place(
    office: Office, seat: Seating
) -> None:
    agent = office.agent("Ada")
    many = [("user", f"line {number}") for number in range(1, 205)]
    long = _session(office, agent, *many, ("assistant", "The Museum opens at ten."))
    _session(office, agent, ("user", "lunch"), sourcePlugin="slack", scope="shared")
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/sessions")
    sessions = page.get_by_role("list", name="Sessions", exact=True)
    expect(sessions.get_by_role("link")).to_have_count(2)
    page.get_by_label("Scope").select_option("shared")
    expect(sessions.get_by_role("link")).to_have_text(["slack"])
    page.get_by_label("Scope").select_option("")
    page.get_by_label("Search what was said").fill("museum")
    found = page.get_by_role("list", name="Found in this session")
    expect(found.locator("mark")).to_have_text("Museum")
    assert page.evaluate("document.querySelector('#main').scrollWidth") <= NARROW[0]
    found.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"{long}.*entry=205"))
    expect(page.get_by_label("assistant, entry 205")).to_be_in_viewport()


def test_an_agent_with_whom_nobody_spoke_teaches_how_it_comes_to_be(
    office: Office, seat: Seating
) -> None:
    agent = office.agent("Quiet")
    someone = seat()
    someone.visit(f"/agents/{agent['id']}/sessions")
    expect(someone.page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    someone.page.get_by_label("Search what was said").fill("x")
    expect(someone.page.get_by_role("heading", name="Nothing of that was said")).to_be_visible()
