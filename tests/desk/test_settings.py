"""Settings: people, keys, policy, secrets, webhooks and the audit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from playwright.sync_api import expect
from tests.desk.browsing import NARROW, answered, wait_for_copied
from tests.desk.conftest import Office, Seating


def test_people_are_added_changed_and_removed_and_the_last_owner_stays(
    seat: Seating, office: Office
) -> None:
    someone = seat()
    someone.expected = {400, 409}
    page, name = someone.page, f"Grace {office.mark}"
    taken = office.person("Ida")["email"]
    someone.visit("/settings")
    expect(page).to_have_url(re.compile("/settings/people$"))
    expect(page.get_by_role("button", name="Remove Owner", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Add a person").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill(name)
    form.get_by_label("E-mail").fill(taken)
    form.get_by_label("Role").select_option("admin")
    form.get_by_label("Timezone").fill("Europe/Paris")
    form.get_by_role("button", name="Add", exact=True).click()
    expect(form.get_by_role("alert")).to_be_visible()
    form.get_by_label("E-mail").fill(f"{office.mark}@example.com")
    form.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row", name=name)
    expect(row).to_contain_text("admin")
    expect(row).to_contain_text("Europe/Paris")
    row.get_by_role("button", name=f"Change {name}").click()
    form.get_by_label("Title").fill("Head of support")
    form.get_by_label("Role").select_option("member")
    form.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Head of support")
    expect(row).to_contain_text("member")
    someone.look_for_barriers()
    row.get_by_role("button", name=f"Remove {name}").click()
    form.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_members_change_their_own_profile_and_are_told_who_may_do_the_rest(
    seat: Seating, office: Office
) -> None:
    name = f"Mia {office.mark}"
    someone = seat(office.token_of(office.person(name)), NARROW)
    page = someone.page
    someone.visit("/settings/people")
    expect(page.get_by_role("button", name="Add a person")).to_have_count(0)
    expect(page.get_by_role("button", name="Change Owner", exact=True)).to_be_disabled()
    page.get_by_role("button", name=f"Change {name}").click()
    form = page.get_by_role("dialog")
    expect(form.get_by_label("Name")).to_be_disabled()
    form.get_by_label("Pronouns").fill("she/her")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    expect(page.get_by_role("row", name=name)).to_contain_text("she/her")
    tabs = page.get_by_role("navigation", name="Settings")
    for tab in ("Secrets", "Webhooks", "Audit"):
        tabs.get_by_role("link", name=tab).click()
        expect(page.get_by_text("is for owners and admins.")).to_be_visible()
        expect(page.get_by_text(re.compile("Ask .*Owner"))).to_be_visible()
    tabs.get_by_role("link", name="Policy").click()
    expect(page.get_by_role("button", name="Add a rule")).to_be_disabled()
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")


def test_a_key_is_seen_once_and_ends_when_it_is_revoked(seat: Seating, office: Office) -> None:
    someone = seat()
    someone.expected = {400, 404}
    page, name = someone.page, f"Runtime {office.mark}"
    agent = office.agent("Marco")
    someone.visit("/settings/keys")
    page.get_by_role("button", name="Make a key").click()
    form = page.get_by_role("dialog", name="Make a key")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Kind").select_option("agent")
    expect(form.get_by_label("tenant:admin")).to_be_disabled()
    form.get_by_label("Agent", exact=True).fill("nobody-is-called-this")
    form.get_by_label("workspace:read").check()
    form.get_by_role("button", name="Make", exact=True).click()
    expect(form.get_by_role("alert")).to_be_visible()
    form.get_by_label("Agent", exact=True).fill(agent["slug"])
    form.get_by_role("button", name="Make", exact=True).click()
    shown = page.get_by_role("dialog", name=re.compile("is made"))
    key = shown.get_by_label("The key", exact=True).inner_text()
    shown.get_by_role("button", name="Copy the key").click()
    wait_for_copied(page, key)
    shown.get_by_role("button", name="I have kept it").click()
    row = page.get_by_role("row", name=name)
    expect(row).to_contain_text("never")
    expect(row).to_contain_text("workspace:read")
    assert key not in page.content()
    bearer = {"Authorization": f"Bearer {key}"}
    read = f"/v1/agents/{agent['id']}/files"
    assert office.http.get(read, headers=bearer).is_success
    someone.look_for_barriers()
    row.get_by_role("button", name=f"Revoke {name}").click()
    with answered(page, "DELETE", "/v1/keys/"):
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert office.http.get(read, headers=bearer).status_code == 401


def test_a_policy_says_which_files_change_before_it_is_saved(seat: Seating, office: Office) -> None:
    path = f"rules-{office.mark}.md"
    template = office.template()
    office.put(f"/v1/templates/{template['id']}", path, "Be kind.")
    office.agent("Marco", template)
    someone = seat()
    page = someone.page
    before = office.ask("GET", "/v1/policy")
    someone.visit("/settings/policy")
    fixed = page.get_by_role("list", name="Fixed rules")
    expect(fixed).to_contain_text("GUARDRAILS.md")
    count = len(before["classes"])
    for pattern in ("other/**", path):
        page.get_by_role("button", name="Add a rule").click()
        at = page.get_by_role("list", name="Rules", exact=True).get_by_role("listitem").count()
        page.get_by_label(f"Pattern of rule {at}").fill(pattern)
    last = page.get_by_label(f"Pattern of rule {count + 2}")
    last.press("Alt+ArrowUp")
    moved = page.get_by_label(f"Pattern of rule {count + 1}")
    expect(moved).to_have_value(path)
    expect(moved).to_be_focused()
    page.get_by_role("button", name=f"Remove rule {count + 2}").click()
    someone.look_for_barriers()
    page.get_by_role("button", name="Preview and save").click()
    preview = page.get_by_role("dialog", name="What this will do")
    expect(preview.get_by_role("row", name=path)).to_contain_text(re.compile("live.*pinned"))
    expect(preview.get_by_role("row", name=path)).to_contain_text("1")
    with answered(page, "PUT", "/v1/policy"):
        preview.get_by_role("button", name="Save the policy").click()
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    assert {"pattern": path, "class": "pinned"} in office.ask("GET", "/v1/policy")["classes"]

    page.get_by_role("button", name=f"Remove rule {count + 1}").click()
    page.get_by_label("Days that runs are kept").fill("90")
    page.get_by_role("button", name="Preview and save").click()
    save = preview.get_by_role("button", name="Save the policy")
    expect(preview.get_by_text("Files would no longer wait for a review.")).to_be_visible()
    expect(save).to_be_disabled()
    preview.get_by_label("Reason").fill("It was only a test")
    with answered(page, "PUT", "/v1/policy"):
        save.click()
    expect(preview).to_have_count(0)
    now = office.ask("GET", "/v1/policy")
    assert now["runRetentionDays"] == 90
    assert now["classes"] == before["classes"]
    office.ask("PUT", "/v1/policy", before)


def test_a_secret_goes_in_and_never_comes_out(seat: Seating, office: Office) -> None:
    someone = seat()
    page, id = someone.page, f"vault-{office.mark}"
    someone.visit("/settings/secrets")
    page.get_by_role("button", name="Keep a secret").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Id").fill(id)
    form.get_by_label("Value").fill(f"hush-{office.mark}")
    form.get_by_role("button", name="Keep", exact=True).click()
    row = page.get_by_role("row", name=id)
    expect(row).to_be_visible()
    assert f"hush-{office.mark}" not in page.content()
    agent = office.agent("Marco")
    kept = office.put(f"/v1/agents/{agent['id']}", "notes/a.md", f"it is hush-{office.mark}.")
    assert kept["content"] == f"it is [REDACTED:{id}]."
    row.get_by_role("button", name=f"Replace {id}").click()
    expect(form.get_by_label("Value")).to_have_value("")
    form.get_by_role("button", name="Cancel").click()
    someone.look_for_barriers()
    row.get_by_role("button", name=f"Forget {id}").click()
    form.get_by_role("button", name="Forget").click()
    expect(row).to_have_count(0)


@contextmanager
def _listener(answers: list[int], heard: list[str]) -> Iterator[str]:
    class Ear(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append(json.loads(body)["type"])
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.end_headers()

        def log_message(self, *said: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Ear)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def test_a_webhook_shows_its_secret_once_and_every_attempt_to_deliver(
    seat: Seating, office: Office
) -> None:
    someone = seat()
    someone.expected = {400}
    page, heard = someone.page, list[str]()
    with _listener([500, 204], heard) as address:
        someone.visit("/settings/webhooks")
        page.get_by_role("button", name="New webhook").click()
        form = page.get_by_role("dialog")
        form.get_by_label("Address").fill("ftp://example.com/hook")
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_role("alert")).to_contain_text("http or https")
        form.get_by_label("Address").fill(address)
        form.get_by_label("Everything").uncheck()
        form.get_by_label("run.started").check()
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_label("The secret", exact=True)).to_contain_text("whsec_")
        form.get_by_role("button", name="I have kept it").click()
        page.get_by_role("link", name=address).click()
        expect(page.get_by_text("Nothing posted yet")).to_be_visible()
        office.ask("POST", "/v1/runs", {"workflowId": "tests"})
        deliveries = page.get_by_role("list", name="Deliveries")
        expect(deliveries).to_contain_text("run.started")
        expect(deliveries).to_contain_text("500")
        deliveries.get_by_role("button", name="Replay").first.click()
        expect(deliveries.get_by_text("delivered").first).to_be_visible()
        assert set(heard) == {"run.started"}
        someone.look_for_barriers()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("paused")).to_be_visible()
        page.get_by_role("button", name="Delete").click()
        form.get_by_role("button", name="Delete").click()
        expect(page).to_have_url(re.compile("/settings/webhooks$"))
        expect(page.get_by_role("link", name=address)).to_have_count(0)


def test_the_audit_tells_who_did_what_and_leads_to_it(seat: Seating, office: Office) -> None:
    made = office.ask("POST", "/accounts/me/sandboxes", {"name": f"told {office.mark}"})
    someone = seat()
    page = someone.page
    someone.visit("/settings/audit")
    subject = f"sandbox/{made['sandboxId']}"
    page.get_by_label("Filter by text").fill(made["sandboxId"])
    expect(page.get_by_role("row", name=subject)).to_contain_text("Owner")
    expect(page.get_by_role("status").filter(has_text="loaded")).to_contain_text("1 of")
    someone.look_for_barriers()
    page.get_by_role("link", name=subject).click()
    expect(page.get_by_role("heading", name=f"told {office.mark}")).to_be_visible()


def test_a_policy_under_change_is_not_left_by_a_click_beside(seat: Seating) -> None:
    someone = seat()
    someone.visit("/settings/policy")
    page = someone.page
    page.get_by_role("button", name="Add a rule").click()
    page.get_by_role("link", name="Agents", exact=True).click()
    asked = page.get_by_role("dialog", name="Leave without saving?")
    asked.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Changed, not saved yet.")).to_be_visible()
    page.get_by_role("link", name="Agents", exact=True).click()
    asked.get_by_role("button", name="Discard and leave").click()
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
