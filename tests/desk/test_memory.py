"""Memory: what an agent remembers, and what its dreams make of it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating

_COFFEE = "Ines drinks her coffee without sugar"
_TRAM = "The tram leaves every ten minutes"


def _memories(office: Office, agent: Any, *contents: str) -> None:
    for content in contents:
        office.ask("POST", f"/v1/agents/{agent['id']}/memories", {"content": content})


def _recall(office: Office, agent: Any, *questions: str) -> None:
    tool = f"/v1/agents/{agent['id']}/tools/recall"
    for question in questions:
        office.ask("POST", tool, {"arguments": {"query": question}, "scope": "main"})


def test_memories_are_told_recalled_and_forgotten(office: Office, seat: Seating) -> None:
    agent = office.agent("Ada")
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/memory")
    expect(page.get_by_role("heading", name="It remembers nothing yet")).to_be_visible()
    expect(page.get_by_role("heading", name="No dreams yet")).to_be_visible()
    expect(page.get_by_role("link", name="MEMORY.md")).to_have_attribute(
        "href", f"/agents/{agent['id']}/workspace?file=MEMORY.md"
    )
    page.get_by_role("button", name="Remember").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What is to be remembered").fill(_COFFEE)
    dialog.get_by_label("Tags").fill("guests, drinks")
    dialog.get_by_label("Kind").select_option("user")
    dialog.get_by_role("button", name="Remember").click()
    memories = page.get_by_role("list", name="Memories")
    expect(memories.get_by_role("listitem")).to_have_count(1)
    expect(memories).to_contain_text("guests")

    # What others change appears without reload.
    _memories(office, agent, _TRAM)
    expect(memories.get_by_role("listitem")).to_have_count(2)

    page.get_by_label("Recall by a question or some words").fill("COFFE")
    recalled = page.get_by_role("list", name="Recalled")
    expect(recalled.get_by_role("listitem")).to_have_count(1)
    expect(recalled.get_by_role("img", name="Score of the recall 1.00")).to_be_visible()
    someone.look_for_barriers()
    page.get_by_label("Recall by a question or some words").fill("")

    memories.get_by_role("button", name=f"Forget: {_TRAM}").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(memories.get_by_role("listitem")).to_have_count(2)
    memories.get_by_role("button", name=f"Forget: {_TRAM}").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(memories.get_by_role("listitem")).to_have_count(1)


def test_a_dry_run_tells_every_reason_and_a_dream_lands(office: Office, seat: Seating) -> None:
    agent = office.agent("Ada")
    _memories(office, agent, _COFFEE, _TRAM)
    _recall(office, agent, "coffee", "sugar", "coffee sugar", "tram")
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/memory")
    page.get_by_role("button", name="Dry run").click()
    dialog = page.get_by_role("dialog", name="What a dream would do")
    expect(dialog.get_by_text("A dry run: nothing was changed.")).to_be_visible()
    expect(dialog.get_by_role("region", name="Difference")).to_contain_text(f"+- {_COFFEE}")
    expect(dialog.get_by_role("list", name="Promoted", exact=True)).to_contain_text(_COFFEE)
    rejected = dialog.get_by_role("list", name="Not promoted")
    expect(rejected).to_contain_text("recalled 1 times, and 3 are needed")
    expect(rejected.get_by_role("img", name="0.35 is needed")).to_be_visible()
    someone.look_for_barriers()
    dialog.get_by_role("button", name="Close").last.click()
    assert office.ask("GET", f"/v1/agents/{agent['id']}/dreams")["items"] == []

    page.get_by_role("button", name="Dream now").click()
    dialog = page.get_by_role("dialog", name="A dream")
    expect(dialog.get_by_role("list", name="Promoted", exact=True)).to_contain_text(_COFFEE)
    dialog.get_by_role("button", name="Close").last.click()
    row = page.get_by_role("table", name="Dreams").get_by_role("row").last
    expect(row).to_contain_text("done")
    expect(row).to_contain_text("1 came up too seldom")
    coffee = (
        page.get_by_role("list", name="Memories").get_by_role("listitem").filter(has_text=_COFFEE)
    )
    expect(coffee).to_contain_text("promoted")


def test_a_dream_that_waits_is_rejected_with_a_reason_or_approved(
    office: Office, seat: Seating
) -> None:
    agent = office.agent("Ada", config={"dreaming": {"review": True}})
    dreams = f"/v1/agents/{agent['id']}/dreams"
    _memories(office, agent, _COFFEE)
    _recall(office, agent, "coffee", "sugar", "coffee sugar")
    office.ask("POST", dreams, {})
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/memory")
    page.get_by_role("button", name="Review").click()
    dialog = page.get_by_role("dialog", name="Review a dream")
    expect(dialog.get_by_role("region", name="Difference")).to_contain_text(_COFFEE)
    dialog.get_by_label("Why it is rejected").fill("too private")
    dialog.get_by_role("button", name="Reject").click()
    rows = page.get_by_role("table", name="Dreams").get_by_role("row")
    expect(rows.last).to_contain_text("rejected")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_role("dialog", name="A dream")).to_contain_text("too private")
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()

    office.ask("POST", dreams, {})
    page.get_by_role("button", name="Review").click()
    with answered(page, "POST", "/approve"):
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(rows.nth(1)).to_contain_text("done")
    served = office.ask("GET", f"/v1/agents/{agent['id']}/files/MEMORY.md")
    assert _COFFEE in served["content"]
    assert page.evaluate("document.querySelector('#main').scrollWidth") <= NARROW[0]


def test_a_member_looks_and_is_told_why_not_more(office: Office, seat: Seating) -> None:
    agent = office.agent("Ada")
    _memories(office, agent, _COFFEE)
    member = office.person("Mia Member")
    someone = seat(token=office.token_of(member))
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/memory")
    expect(page.get_by_role("list", name="Memories")).to_contain_text(_COFFEE)
    for name in ("Remember", "Dry run", "Dream now"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
        expect(page.get_by_role("button", name=name)).to_have_attribute(
            "title", "Only owners and admins change what agents remember."
        )
