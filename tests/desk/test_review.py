"""Nothing pinned moves before somebody has looked: for one agent, or for all at once."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating

BEFORE = "# Guardrails\n\n- Never promise a refund.\n- Be kind.\n"
AFTER = "# Guardrails\n\n- Never promise a refund above 50.\n- Be kind.\n- Ask a human first.\n"
PATH = "GUARDRAILS.md"


def _scene(office: Office, *names: str) -> tuple[dict, list[dict]]:  # type: ignore[type-arg]
    """Agents that follow a template whose guardrails have been edited since."""
    template = office.template("Support", GUARDRAILS_md=BEFORE)
    agents = [office.agent(name, template) for name in names]
    office.put(f"/v1/templates/{template['id']}", PATH, AFTER, reason="Legal asked for a limit")
    return template, agents


def _served(office: Office, agent: dict) -> str:  # type: ignore[type-arg]
    return str(office.ask("GET", f"/v1/agents/{agent['id']}/files/{PATH}")["content"])


def _open(page: Page, agent: dict) -> None:  # type: ignore[type-arg]
    page.get_by_role("button", name=f"Review {PATH} for {agent['name']}").click()


def test_a_guardrail_edit_reaches_the_agent_only_when_somebody_has_looked_and_accepted(
    seat: Seating, office: Office
) -> None:
    _, [agent] = _scene(office, f"Ada {office.mark}")
    own = "# My own rules\n"
    office.put(f"/v1/agents/{agent['id']}", PATH, own)
    someone = seat()
    page = someone.page
    someone.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog", name=f"Review {PATH} for {agent['name']}")
    expect(dialog.get_by_label(f"Pinned text of {PATH}")).to_contain_text("promise a refund.")
    expect(dialog.get_by_label(f"Latest text of {PATH}")).to_contain_text("Ask a human first.")
    expect(dialog.get_by_text("Legal asked for a limit")).to_be_visible()
    expect(dialog.get_by_text("Template, version 2")).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"^\d+ → \d+ tokens$"))).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"^\+\d+$"))).to_be_visible()
    dialog.get_by_text("Show the agent's own text").click()
    expect(dialog.get_by_role("region", name="The agent's own text")).to_have_text(own.strip())
    expect(dialog.get_by_role("button", name="Roll back")).to_have_count(0)
    someone.look_for_barriers()
    assert _served(office, agent) == own
    with answered(page, "POST", "/accept"):
        dialog.get_by_role("button", name="Accept and drop the override").click()
    expect(page.get_by_text(f"{PATH} is accepted.")).to_be_visible()
    expect(dialog).to_have_count(0)
    assert _served(office, agent) == AFTER

    someone.visit(f"/agents/{agent['slug']}/workspace?file={PATH}")
    expect(page.get_by_role("heading", name=agent["name"])).to_be_visible()
    expect(page.get_by_text("update waits")).to_have_count(0)


def test_what_is_accepted_is_what_was_read_and_a_newer_text_asks_again(
    seat: Seating, office: Office
) -> None:
    template, [agent] = _scene(office, f"Bea {office.mark}")
    place = f"/v1/templates/{template['id']}"
    someone = seat()
    page = someone.page
    someone.expected = {409}
    page.route("**/v1/events", lambda route: route.abort())
    someone.wrong.clear()
    someone.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label(f"Latest text of {PATH}")).to_contain_text("Ask a human first.")
    office.put(place, PATH, AFTER + "- And log it.\n", reason="Audit")
    dialog.get_by_role("button", name="Accept").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Upstream has moved on")
    expect(dialog.get_by_label(f"Latest text of {PATH}")).to_contain_text("And log it.")
    assert _served(office, agent) == BEFORE
    with answered(page, "POST", "/accept"):
        dialog.get_by_role("button", name="Accept").click()
    expect(dialog).to_have_count(0)
    assert _served(office, agent).endswith("- And log it.\n")
    someone.wrong = [each for each in someone.wrong if "ERR_FAILED" not in each]


def test_a_newer_text_is_announced_while_one_reads_and_a_pin_can_be_rolled_back(
    seat: Seating, office: Office
) -> None:
    template, [agent] = _scene(office, f"Cleo {office.mark}")
    office.ask(
        "POST",
        f"/v1/agents/{agent['id']}/pins/{PATH}/accept",
        {"sha256": _latest(office, agent)},
    )
    place = f"/v1/templates/{template['id']}"
    office.put(place, PATH, AFTER + "- Third.\n")
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    latest = dialog.get_by_label(f"Latest text of {PATH}")
    expect(latest).to_contain_text("Third.")
    expect(page.get_by_role("img", name=re.compile("^Live"))).to_be_attached()
    office.put(place, PATH, AFTER + "- Fourth.\n")
    newer = dialog.get_by_role("button", name="Show the newer one")
    expect(newer).to_be_visible()
    expect(latest).to_contain_text("Third.")
    newer.click()
    expect(latest).to_contain_text("Fourth.")
    dialog.get_by_role("button", name="Roll back").click()
    with answered(page, "POST", "/rollback"):
        dialog.get_by_role("button", name="Yes, roll back").click()
    expect(dialog).to_have_count(0)
    assert _served(office, agent) == BEFORE


def _latest(office: Office, agent: dict) -> str:  # type: ignore[type-arg]
    pins = office.ask("GET", f"/v1/agents/{agent['id']}/pins")["items"]
    return str(next(pin["latestSha256"] for pin in pins if pin["path"] == PATH))


def test_one_look_is_enough_for_all_who_follow_and_each_has_its_own_outcome(
    seat: Seating, office: Office
) -> None:
    names = [f"{name} {office.mark}" for name in ("Dan", "Eve", "Fay", "Gus")]
    template, agents = _scene(office, *names)
    office.put(f"/v1/agents/{agents[1]['id']}", PATH, "# Eve's own\n")
    accept = f"/v1/agents/{agents[0]['id']}/pins/{PATH}/accept"
    office.ask("POST", accept, {"sha256": _latest(office, agents[0])})
    office.put(f"/v1/templates/{template['id']}", PATH, AFTER + "- Third.\n", reason="More")
    someone = seat()
    page = someone.page
    someone.visit(f"/agent-templates/{template['id']}/review?file={PATH}")
    expect(page.get_by_role("heading", name="4 agents wait")).to_be_visible()
    page.get_by_role("radio", name="3 agents").check()
    expect(page.get_by_label(f"Pinned text of {PATH}")).not_to_contain_text("Ask a human")
    page.get_by_role("radio", name="1 agent").check()
    expect(page.get_by_label(f"Pinned text of {PATH}")).to_contain_text("Ask a human")
    expect(page.get_by_text("which accepting drops")).to_be_visible()
    someone.look_for_barriers()

    page.get_by_role("checkbox", name="All").uncheck()
    page.get_by_role("checkbox", name=names[2]).check()
    page.route("**/pins/*/accept", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Accept for 1 agent").click()
    became = page.get_by_role("region", name="What became of them")
    expect(became).to_contain_text("0 accepted, 1 failed")
    became.get_by_role("button", name="Try the failed ones again").click()
    expect(became).to_contain_text("1 accepted")
    assert _served(office, agents[2]).endswith("- Third.\n")
    assert _served(office, agents[3]) == BEFORE
    someone.wrong = [each for each in someone.wrong if "ERR_FAILED" not in each]

    page.get_by_role("checkbox", name="All").check()
    page.get_by_role("button", name="Accept for all 3 agents").click()
    expect(became).to_contain_text("4 accepted")
    for agent in agents:
        assert _served(office, agent).endswith("- Third.\n")


def test_my_inbox_has_what_waits_for_my_agents_and_members_only_read(
    seat: Seating, office: Office
) -> None:
    mine = office.person(f"Hanna {office.mark}")
    template, [agent, other] = _scene(office, f"Ida {office.mark}", f"Jon {office.mark}")
    office.ask("PATCH", f"/v1/agents/{agent['id']}", {"humanPairId": mine["id"]})
    someone = seat(token=office.token_of(mine), size=NARROW)
    page = someone.page
    someone.visit("/inbox")
    expect(page.get_by_role("link", name=agent["name"])).to_be_visible()
    expect(page.get_by_role("link", name=other["name"])).to_have_count(0)
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Only an owner or an admin accepts")).to_be_visible()
    expect(dialog.get_by_role("button", name="Accept")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page.get_by_role("link", name="Review for all").click()
    expect(page.get_by_role("heading", name="2 agents wait")).to_be_visible()
    expect(page.get_by_role("button", name="Accept for all 2 agents")).to_be_disabled()
    assert template["id"] in page.url


def test_an_empty_inbox_teaches_what_would_be_there(seat: Seating, office: Office) -> None:
    nobody = office.person(f"Kai {office.mark}")
    someone = seat(token=office.token_of(nobody))
    someone.visit("/inbox")
    expect(someone.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    someone.look_for_barriers()
