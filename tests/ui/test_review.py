"""Review of pinned updates, for one agent and in bulk."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage

BEFORE = "# Guardrails\n\n- Never promise a refund.\n- Be kind.\n"
AFTER = "# Guardrails\n\n- Never promise a refund above 50.\n- Be kind.\n- Ask a human first.\n"
AFTER_THIRD = AFTER + "- Third.\n"
PATH = "GUARDRAILS.md"


def _create_pending_update(api_setup: ApiSetup, *names: str) -> tuple[dict, list[dict]]:  # type: ignore[type-arg]
    """Agents of a template whose guardrails were edited afterwards."""
    template = api_setup.create_template("Support", GUARDRAILS_md=BEFORE)
    agents = [api_setup.create_agent(name, template) for name in names]
    api_setup.put_file(
        f"/v1/templates/{template['id']}", PATH, AFTER, reason="Legal asked for a limit"
    )
    return template, agents


def _served(api_setup: ApiSetup, agent: dict) -> str:  # type: ignore[type-arg]
    return str(api_setup.request("GET", f"/v1/agents/{agent['id']}/files/{PATH}")["content"])


def _open(page: Page, agent: dict) -> None:  # type: ignore[type-arg]
    page.get_by_role("button", name=f"Review {PATH} for {agent['name']}").click()


def test_a_guardrail_edit_reaches_the_agent_only_after_it_was_accepted(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    _, [agent] = _create_pending_update(api_setup, f"Ada {api_setup.suffix}")
    own = "# My own rules\n"
    api_setup.put_file(f"/v1/agents/{agent['id']}", PATH, own)
    user = signed_in_page()
    page = user.page
    user.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog", name=f"Review {PATH} for {agent['name']}")
    expect(dialog.get_by_label(f"Override text of {PATH}")).to_contain_text(own.strip()[:20])
    dialog.get_by_role("radio", name="Pinned text").check()
    expect(dialog.get_by_label(f"Pinned text of {PATH}")).to_contain_text("promise a refund.")
    dialog.get_by_role("radio", name="Override, served now").check()
    expect(dialog.get_by_label(f"Latest text of {PATH}")).to_contain_text("Ask a human first.")
    expect(dialog.get_by_text("Legal asked for a limit")).to_be_visible()
    expect(dialog.get_by_text("Template, version 2")).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"^\d+ → \d+ tokens$"))).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"^\+\d+$"))).to_be_visible()
    dialog.get_by_text("Show lost lines").click()
    lost = dialog.get_by_role("region", name="Lost lines")
    expect(lost).to_have_text("\n".join(line for line in own.split("\n") if line.strip()))
    expect(dialog.get_by_role("button", name="Roll back")).to_have_count(0)
    user.check_accessibility()
    assert _served(api_setup, agent) == own
    with wait_for_response(page, "POST", "/accept"):
        dialog.get_by_role("button", name="Accept and remove override").click()
    expect(page.get_by_text(f"Accepted {PATH}")).to_be_visible()
    expect(dialog).to_have_count(0)
    assert _served(api_setup, agent) == AFTER

    user.visit(f"/agents/{agent['slug']}/workspace?file={PATH}")
    expect(page.get_by_role("heading", name=agent["name"])).to_be_visible()
    expect(page.get_by_role("link", name="update available")).to_have_count(0)


def test_only_the_reviewed_version_is_accepted_and_a_newer_one_needs_review_again(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template, [agent] = _create_pending_update(api_setup, f"Bea {api_setup.suffix}")
    template_url = f"/v1/templates/{template['id']}"
    user = signed_in_page()
    page = user.page
    user.expected_statuses = {409}
    page.route("**/v1/events", lambda route: route.abort())
    user.errors.clear()
    user.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label(f"Latest text of {PATH}")).to_contain_text("Ask a human first.")
    api_setup.put_file(template_url, PATH, AFTER + "- And log it.\n", reason="Audit")
    dialog.get_by_role("button", name="Accept").click()
    expect(dialog.get_by_role("alert")).to_contain_text("A newer version is available")
    expect(dialog.get_by_label(f"Latest text of {PATH}")).to_contain_text("And log it.")
    assert _served(api_setup, agent) == BEFORE
    with wait_for_response(page, "POST", "/accept"):
        dialog.get_by_role("button", name="Accept").click()
    expect(dialog).to_have_count(0)
    assert _served(api_setup, agent).endswith("- And log it.\n")
    user.errors = [error for error in user.errors if "ERR_FAILED" not in error]


def test_a_newer_version_is_announced_during_review_and_a_pin_is_rolled_back(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template, [agent] = _create_pending_update(api_setup, f"Cleo {api_setup.suffix}")
    api_setup.request(
        "POST",
        f"/v1/agents/{agent['id']}/pins/{PATH}/accept",
        {"sha256": _latest(api_setup, agent)},
    )
    template_url = f"/v1/templates/{template['id']}"
    api_setup.put_file(template_url, PATH, AFTER + "- Third.\n")
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    latest = dialog.get_by_label(f"Latest text of {PATH}")
    expect(latest).to_contain_text("Third.")
    expect(page.get_by_role("img", name=re.compile("^Connected"))).to_be_attached()
    api_setup.put_file(template_url, PATH, AFTER + "- Fourth.\n")
    newer = dialog.get_by_role("button", name="Show newer version")
    expect(newer).to_be_visible()
    expect(latest).to_contain_text("Third.")
    newer.click()
    expect(latest).to_contain_text("Fourth.")
    dialog.get_by_role("button", name="Roll back").click()
    with wait_for_response(page, "POST", "/rollback"):
        dialog.get_by_role("button", name="Confirm rollback").click()
    expect(dialog).to_have_count(0)
    assert _served(api_setup, agent) == BEFORE


def _latest(api_setup: ApiSetup, agent: dict) -> str:  # type: ignore[type-arg]
    pins = api_setup.request("GET", f"/v1/agents/{agent['id']}/pins")["items"]
    return str(next(pin["latestSha256"] for pin in pins if pin["path"] == PATH))


def test_bulk_review_accepts_for_all_agents_with_one_outcome_per_agent(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    names = [f"{name} {api_setup.suffix}" for name in ("Dan", "Eve", "Fay", "Gus")]
    template, agents = _create_pending_update(api_setup, *names)
    api_setup.put_file(f"/v1/agents/{agents[1]['id']}", PATH, "# Eve's own\n")
    accept = f"/v1/agents/{agents[0]['id']}/pins/{PATH}/accept"
    api_setup.request("POST", accept, {"sha256": _latest(api_setup, agents[0])})
    api_setup.put_file(f"/v1/templates/{template['id']}", PATH, AFTER_THIRD, reason="More")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agent-templates/{template['id']}/review?file={PATH}")
    expect(page.get_by_role("heading", name="4 agents to update")).to_be_visible()
    page.get_by_role("radio", name="3 agents").check()
    served = page.get_by_label(re.compile(f"^(Served|Override) text of {PATH}"))
    expect(served).not_to_contain_text("Ask a human")
    page.get_by_role("radio", name="1 agent").check()
    expect(served).to_contain_text("Ask a human")
    expect(page.get_by_text("Accepting removes the override")).to_be_visible()
    user.check_accessibility()

    page.get_by_role("checkbox", name="All").uncheck()
    page.get_by_role("checkbox", name=names[2]).check()
    page.route("**/pins/*/accept", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Accept for 1 agent").click()
    _confirm(page)
    results = page.get_by_role("region", name="Results")
    expect(results).to_contain_text("0 accepted, 1 failed")
    results.get_by_role("button", name="Retry failed").click()
    expect(results).to_contain_text("1 accepted")
    assert _served(api_setup, agents[2]).endswith("- Third.\n")
    assert _served(api_setup, agents[3]) == BEFORE
    user.errors = [error for error in user.errors if "ERR_FAILED" not in error]

    page.get_by_role("checkbox", name="All").check()
    page.get_by_role("button", name="Accept for all 3 agents").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"Overrides are removed of {names[1]}.")
    user.check_accessibility()
    _confirm(page)
    expect(results).to_contain_text("4 accepted")
    for agent in agents:
        assert _served(api_setup, agent).endswith("- Third.\n")

    with wait_for_response(page, "POST", "/rollback"):
        results.get_by_role("button", name="Roll back for all").click()
    expect(results).to_contain_text("1 accepted, 3 rolled back")
    expect(results.get_by_role("button")).to_have_count(0)
    texts = [_served(api_setup, agent) for agent in agents]
    assert texts == [AFTER, "# Eve's own\n", AFTER_THIRD, BEFORE]


def test_an_edit_of_a_default_is_reviewed_for_all_agents_that_inherit_it(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent(f"Ola {api_setup.suffix}")
    path = "CAPABILITIES.md"
    api_setup.put_file("/v1/defaults", path, f"# {api_setup.suffix}\n")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agent-templates/defaults/review?file={path}")
    page.get_by_role("button", name=re.compile("^Accept for ")).click()
    _confirm(page)
    results = page.get_by_role("region", name="Results")
    expect(results).to_contain_text(agent["name"])
    user.check_accessibility()
    url = f"/v1/agents/{agent['id']}/files/{path}"
    assert api_setup.request("GET", url)["content"] == f"# {api_setup.suffix}\n"

    with wait_for_response(page, "POST", "/rollback"):
        results.get_by_role("button", name="Roll back for all").click()
    expect(results).to_contain_text("rolled back")
    assert api_setup.request("GET", url)["content"] != f"# {api_setup.suffix}\n"


def test_my_inbox_lists_my_agents_and_members_cannot_accept(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    human = api_setup.create_person(f"Hanna {api_setup.suffix}")
    template, [agent, other] = _create_pending_update(
        api_setup, f"Ida {api_setup.suffix}", f"Jon {api_setup.suffix}"
    )
    api_setup.request("PATCH", f"/v1/agents/{agent['id']}", {"humanPairId": human["id"]})
    user = signed_in_page(token=api_setup.create_token(human), size=NARROW)
    page = user.page
    user.visit("/inbox")
    expect(page.get_by_role("link", name=agent["name"])).to_be_visible()
    expect(page.get_by_role("link", name=other["name"])).to_have_count(0)
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Only owners and admins can accept updates")).to_be_visible()
    expect(dialog.get_by_role("button", name="Accept")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page.get_by_role("link", name="Review for all").click()
    expect(page.get_by_role("heading", name="1 agent to update")).to_be_visible()
    expect(page.get_by_role("button", name="Accept for 1 agent")).to_be_disabled()
    assert template["id"] in page.url


def _confirm(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Accept update").click()


def test_an_update_is_declined_and_the_review_rolled_back_in_the_done_tab(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    _, [agent] = _create_pending_update(api_setup, f"Kim {api_setup.suffix}")
    user = signed_in_page()
    page = user.page
    user.visit("/inbox?all")
    _open(page, agent)
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Decline").click()
    dialog.get_by_label("Reason").fill("Too early")
    user.check_accessibility()
    with wait_for_response(page, "POST", "/decline"):
        dialog.get_by_role("button", name="Decline update").click()
    expect(page.get_by_role("status").get_by_role("button", name="Undo")).to_be_visible()
    expect(page.get_by_role("link", name=agent["name"])).to_have_count(0)
    with wait_for_response(page, "GET", "/v1/reviews"):
        page.get_by_role("link", name="Done").click()
    row = page.get_by_role("listitem").filter(has_text="Too early").filter(has_text=agent["name"])
    expect(row).to_contain_text("Declined")
    user.check_accessibility()
    row.get_by_role("button", name="Roll back").click()
    with wait_for_response(page, "POST", "/rollback"):
        page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(row).to_contain_text("Rolled back")
    page.get_by_role("link", name=re.compile("^All")).click()
    expect(row).to_have_count(0)
    expect(page.get_by_role("link", name=agent["name"])).to_be_visible()


def test_an_accept_is_undone_in_its_message(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    _, [agent] = _create_pending_update(api_setup, f"Lou {api_setup.suffix}")
    user = signed_in_page()
    page = user.page
    user.visit("/inbox?all")
    _open(page, agent)
    with wait_for_response(page, "POST", "/accept"):
        page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    with wait_for_response(page, "POST", "/rollback"):
        page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_text(f"Rolled back {PATH}")).to_be_visible()
    assert _served(api_setup, agent) == BEFORE


def test_a_review_is_rolled_back_in_the_history_of_the_file(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    _, [agent] = _create_pending_update(api_setup, f"Noa {api_setup.suffix}")
    url = f"/v1/agents/{agent['id']}"
    api_setup.put_file(url, PATH, "# Noa\n")
    accept = {"sha256": _latest(api_setup, agent)}
    api_setup.request("POST", f"{url}/pins/{PATH}/accept", accept)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['slug']}/workspace?file={PATH}")
    page.get_by_role("button", name="History").click()
    panel = page.get_by_role("complementary", name="History")
    panel.get_by_role("button", name="Roll back").click()
    user.check_accessibility()
    with wait_for_response(page, "POST", "/rollback"):
        page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(page.get_by_text(f"Rolled back {PATH}")).to_be_visible()
    expect(panel.get_by_role("button", name="Roll back")).to_have_count(0)
    assert _served(api_setup, agent) == "# Noa\n"


def test_an_update_is_merged_into_the_override(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    _, [agent] = _create_pending_update(api_setup, f"Mia {api_setup.suffix}")
    api_setup.put_file(f"/v1/agents/{agent['id']}", PATH, f"# Mia\n{BEFORE}")
    user = signed_in_page()
    page = user.page
    user.visit("/inbox?all")
    _open(page, agent)
    with wait_for_response(page, "GET", "/merge"):
        page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    text = page.get_by_role("textbox", name="Merged text")
    expect(text).to_have_value(f"# Mia\n{AFTER}")
    text.fill("<<<<<<< override\n>>>>>>> offered\n")
    expect(page.get_by_role("button", name="Save merge")).to_be_disabled()
    text.fill(f"# Mia!\n{AFTER}")
    page.keyboard.press("Escape")
    question = page.get_by_role("dialog", name="Discard unsaved changes?")
    question.get_by_role("button", name="Cancel").click()
    expect(text).to_have_value(f"# Mia!\n{AFTER}")
    user.check_accessibility()
    with wait_for_response(page, "POST", "/merge"):
        page.get_by_role("button", name="Save merge").click()
    expect(page.get_by_text(f"Merged {PATH}")).to_be_visible()
    assert _served(api_setup, agent) == f"# Mia!\n{AFTER}"


def test_a_merge_of_an_older_update_is_refused(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template, [agent] = _create_pending_update(api_setup, f"Noa {api_setup.suffix}")
    own = f"# Noa\n{BEFORE}"
    api_setup.put_file(f"/v1/agents/{agent['id']}", PATH, own)
    user = signed_in_page()
    page = user.page
    user.expected_statuses = {409}
    user.visit("/inbox?all")
    _open(page, agent)
    with wait_for_response(page, "GET", "/merge"):
        page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    page.get_by_role("textbox", name="Merged text").fill(f"# Noa!\n{AFTER}")
    expect(page.get_by_role("img", name=re.compile("^Connected"))).to_be_attached()
    with wait_for_response(page, "GET", f"/v1/agents/{agent['id']}/pins"):
        api_setup.put_file(f"/v1/templates/{template['id']}", PATH, AFTER_THIRD)
    page.get_by_role("button", name="Save merge").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("textbox", name="Merged text")).to_have_value(f"# Noa!\n{AFTER}")
    assert _served(api_setup, agent) == own


def test_an_empty_inbox_shows_an_empty_state(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    person = api_setup.create_person(f"Kai {api_setup.suffix}")
    user = signed_in_page(token=api_setup.create_token(person))
    user.visit("/inbox")
    expect(user.page.get_by_role("heading", name="Nothing for you to review")).to_be_visible()
    user.check_accessibility()
