"""Settings: people, keys, policy, secrets, webhooks and the audit log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_clipboard, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def test_people_are_added_edited_and_removed_and_the_last_owner_stays(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    user.expected_statuses = {400, 409}
    page, name = user.page, f"Grace {api_setup.suffix}"
    taken = api_setup.create_person("Ida")["email"]
    user.visit("/settings")
    expect(page).to_have_url(re.compile("/settings/people$"))
    expect(page.get_by_role("button", name="Remove Owner", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Add person").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Email").fill(taken)
    form.get_by_label("Role").select_option("admin")
    form.get_by_label("Timezone").fill("Europe/Paris")
    form.get_by_role("button", name="Add", exact=True).click()
    expect(form.get_by_role("alert")).to_be_visible()
    form.get_by_label("Email").fill(f"{api_setup.suffix}@example.com")
    form.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row", name=name)
    expect(row).to_contain_text("admin")
    expect(row).to_contain_text("Europe/Paris")
    row.get_by_role("button", name=f"Edit {name}").click()
    form.get_by_label("Title").fill("Head of support")
    form.get_by_label("Role").select_option("member")
    form.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Head of support")
    expect(row).to_contain_text("member")
    user.check_accessibility()
    row.get_by_role("button", name=f"Invite {name}").click()
    form.get_by_role("button", name="Create link").click()
    link = form.get_by_label("Sign-in link", exact=True).inner_text()
    code = {"code": link.partition("#code=")[2]}
    signed_in = api_setup.http.post("/v1/sign-in", json=code, headers={"Authorization": ""})
    assert signed_in.json()["person"]["name"] == name
    form.get_by_role("button", name="Done").click()
    row.get_by_role("button", name=f"Remove {name}").click()
    form.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_members_edit_their_own_profile_and_see_admin_notices(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    name = f"Mia {api_setup.suffix}"
    user = signed_in_page(api_setup.create_token(api_setup.create_person(name)), NARROW)
    page = user.page
    user.visit("/settings/people")
    expect(page.get_by_role("button", name="Add person")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit Owner", exact=True)).to_be_disabled()
    page.get_by_role("button", name=f"Edit {name}").click()
    form = page.get_by_role("dialog")
    expect(form.get_by_label("Name")).to_be_disabled()
    form.get_by_label("Pronouns").fill("she/her")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    expect(page.get_by_role("row", name=name)).to_contain_text("she/her")
    tabs = page.get_by_role("navigation", name="Settings")
    for tab in ("Secrets", "Webhooks", "Audit log"):
        tabs.get_by_role("link", name=tab).click()
        expect(page.get_by_text("Only owners and admins can")).to_be_visible()
        expect(page.get_by_text(re.compile("Contact .*Owner"))).to_be_visible()
    tabs.get_by_role("link", name="Policy").click()
    expect(page.get_by_role("button", name="Add rule")).to_be_disabled()
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")


def test_an_api_key_is_shown_once_and_stops_working_when_revoked(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    user.expected_statuses = {400, 404}
    page, name = user.page, f"Runtime {api_setup.suffix}"
    agent = api_setup.create_agent("Marco")
    user.visit("/settings/keys")
    page.get_by_role("button", name="Create API key").click()
    form = page.get_by_role("dialog", name="Create API key")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Kind").select_option("agent")
    expect(form.get_by_label("tenant:admin")).to_be_disabled()
    form.get_by_label("Agent", exact=True).fill("nobody-is-called-this")
    form.get_by_label("workspace:read").check()
    form.get_by_role("button", name="Create", exact=True).click()
    expect(form.get_by_role("alert")).to_be_visible()
    form.get_by_label("Agent", exact=True).fill(agent["slug"])
    form.get_by_role("button", name="Create", exact=True).click()
    dialog = page.get_by_role("dialog", name=re.compile("created$"))
    key = dialog.get_by_label("API key", exact=True).inner_text()
    dialog.get_by_role("button", name="Copy API key").click()
    wait_for_clipboard(page, key)
    dialog.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name=name)
    expect(row).to_contain_text("never")
    expect(row).to_contain_text("workspace:read")
    assert key not in page.content()
    bearer = {"Authorization": f"Bearer {key}"}
    read = f"/v1/agents/{agent['id']}/files"
    assert api_setup.http.get(read, headers=bearer).is_success
    user.check_accessibility()
    row.get_by_role("button", name=f"Revoke {name}").click()
    with wait_for_response(page, "DELETE", "/v1/keys/"):
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert api_setup.http.get(read, headers=bearer).status_code == 401


def test_a_policy_preview_lists_files_that_change_class(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    path = f"rules-{api_setup.suffix}.md"
    template = api_setup.create_template()
    api_setup.put_file(f"/v1/templates/{template['id']}", path, "{{AGENT_NAME}}, be kind.")
    api_setup.create_agent("Marco", template)
    user = signed_in_page()
    page = user.page
    before = api_setup.request("GET", "/v1/policy")
    user.visit("/settings/policy")
    fixed = page.get_by_role("list", name="Fixed rules")
    expect(fixed).to_contain_text("GUARDRAILS.md")
    count = len(before["classes"])
    for pattern in ("other/**", path):
        page.get_by_role("button", name="Add rule").click()
        at = page.get_by_role("list", name="Rules", exact=True).get_by_role("listitem").count()
        page.get_by_label(f"Pattern of rule {at}").fill(pattern)
    last = page.get_by_label(f"Pattern of rule {count + 2}")
    last.press("Alt+ArrowUp")
    moved_rule = page.get_by_label(f"Pattern of rule {count + 1}")
    expect(moved_rule).to_have_value(path)
    expect(moved_rule).to_be_focused()
    page.get_by_role("button", name=f"Remove rule {count + 2}").click()
    user.check_accessibility()
    page.get_by_role("button", name="Preview and save").click()
    preview = page.get_by_role("dialog", name="Save policy")
    expect(preview.get_by_role("row", name=path)).to_contain_text(re.compile("live.*pinned"))
    expect(preview.get_by_role("row", name=path)).to_contain_text("1")
    expect(preview.get_by_role("list", name="Files with placeholders")).to_have_text(path)
    expect(preview.get_by_role("button", name="Save policy")).to_be_disabled()
    preview.get_by_label("Pin them with unfilled placeholders").check()
    with wait_for_response(page, "PUT", "/v1/policy"):
        preview.get_by_role("button", name="Save policy").click()
    expect(page.get_by_text("No unsaved changes")).to_be_visible()
    assert {"pattern": path, "class": "pinned"} in api_setup.request("GET", "/v1/policy")["classes"]

    page.get_by_role("button", name=f"Remove rule {count + 1}").click()
    page.get_by_label("Run retention (days)").fill("90")
    page.get_by_role("button", name="Preview and save").click()
    save = preview.get_by_role("button", name="Save policy")
    expect(preview.get_by_text("Some files would no longer need review.")).to_be_visible()
    expect(save).to_be_disabled()
    preview.get_by_label("Reason").fill("It was only a test")
    with wait_for_response(page, "PUT", "/v1/policy"):
        save.click()
    expect(preview).to_have_count(0)
    now = api_setup.request("GET", "/v1/policy")
    assert now["runRetentionDays"] == 90
    assert now["classes"] == before["classes"]
    api_setup.request("PUT", "/v1/policy", before)


def test_a_secret_is_write_only_and_redacted(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    user = signed_in_page()
    page, id = user.page, f"vault-{api_setup.suffix}"
    user.visit("/settings/secrets")
    page.get_by_role("button", name="New secret").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Id").fill(id)
    form.get_by_label("Value").fill(f"hush-{api_setup.suffix}")
    form.get_by_role("button", name="Save", exact=True).click()
    row = page.get_by_role("row", name=id)
    expect(row).to_be_visible()
    assert f"hush-{api_setup.suffix}" not in page.content()
    agent = api_setup.create_agent("Marco")
    saved = api_setup.put_file(
        f"/v1/agents/{agent['id']}", "notes/a.md", f"it is hush-{api_setup.suffix}."
    )
    assert saved["content"] == f"it is [REDACTED:{id}]."
    row.get_by_role("button", name=f"Replace {id}").click()
    expect(form.get_by_label("Value")).to_have_value("")
    form.get_by_role("button", name="Cancel").click()
    user.check_accessibility()
    row.get_by_role("button", name=f"Delete {id}").click()
    form.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


@contextmanager
def webhook_receiver(answers: list[int], received: list[str]) -> Iterator[str]:
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(json.loads(body)["type"])
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def test_a_webhook_shows_its_secret_once_and_logs_every_attempt(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    user.expected_statuses = {400}
    page, received = user.page, list[str]()
    with webhook_receiver([500, 204], received) as address:
        user.visit("/settings/webhooks")
        page.get_by_role("button", name="New webhook").click()
        form = page.get_by_role("dialog")
        form.get_by_label("URL").fill("ftp://example.com/hook")
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_role("alert")).to_contain_text("http or https")
        form.get_by_label("URL").fill(address)
        form.get_by_label("All events").uncheck()
        form.get_by_label("run.started").check()
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_label("Signing secret", exact=True)).to_contain_text("whsec_")
        form.get_by_role("button", name="Done").click()
        page.get_by_role("link", name=address).click()
        expect(page.get_by_text("No deliveries yet")).to_be_visible()
        api_setup.request("POST", "/v1/runs", {"workflowId": "tests"})
        deliveries = page.get_by_role("list", name="Deliveries")
        expect(deliveries).to_contain_text("run.started")
        expect(deliveries).to_contain_text("500")
        deliveries.get_by_role("button", name="Replay").first.click()
        expect(deliveries.get_by_text("delivered").first).to_be_visible()
        assert set(received) == {"run.started"}
        user.check_accessibility()
        with wait_for_response(page, "POST", "/test"):
            page.get_by_role("button", name="Send test").click()
        expect(form.get_by_text("Answer 204")).to_be_visible()
        user.check_accessibility()
        form.get_by_role("button", name="Close").last.click()
        expect(deliveries).to_contain_text("webhook.test")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("paused")).to_be_visible()
        page.get_by_role("button", name="Delete").click()
        form.get_by_role("button", name="Delete").click()
        expect(page).to_have_url(re.compile("/settings/webhooks$"))
        expect(page.get_by_role("link", name=address)).to_have_count(0)


def test_the_audit_log_shows_author_and_links_to_the_record(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    api_setup.request("POST", "/accounts/me/sandboxes", {"name": f"audited {api_setup.suffix}"})
    user = signed_in_page()
    page = user.page
    user.visit("/settings/audit")
    name = f"audited {api_setup.suffix}"
    with wait_for_response(page, "GET", "/v1/audit"):
        page.get_by_label("Records").select_option("sandbox")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name))
    expect(row).to_contain_text("Owner")
    user.check_accessibility()
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", name=f"audited {api_setup.suffix}")).to_be_visible()


def test_leaving_an_unsaved_policy_needs_confirmation(signed_in_page: OpenPage) -> None:
    user = signed_in_page()
    user.visit("/settings/policy")
    page = user.page
    page.get_by_role("button", name="Add rule").click()
    page.get_by_role("link", name="Agents", exact=True).click()
    dialog = page.get_by_role("dialog", name="Discard unsaved changes?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Unsaved changes", exact=True)).to_be_visible()
    page.get_by_role("link", name="Agents", exact=True).click()
    dialog.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
