"""From an answer to its cause in clicks, and back."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.ui.conftest import ApiSetup, OpenPage


def test_an_answer_leads_to_its_run_block_file_version_and_author(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    template = api_setup.create_template("Support")
    url = f"/v1/templates/{template['id']}"
    api_setup.put_file(url, "SOUL.md", "Be brisk.", reason="calmer tone after complaints")
    agent = api_setup.create_agent("Ada", template)
    session = "chat/42"
    body = {"agentId": agent["id"], "sessionId": session, "workflowId": "answer"}
    run = api_setup.request("POST", "/v1/runs", body)["runId"]
    entries = f"/v1/agents/{agent['id']}/sessions/chat%2F42/entries"
    api_setup.request("POST", entries, {"role": "user", "content": "May I?"})
    call = {"arguments": {}, "runId": run, "sessionId": session}
    api_setup.request("POST", f"/v1/agents/{agent['id']}/tools/who_am_i", call)
    api_setup.request("POST", entries, {"role": "assistant", "content": "No."})
    failed = {"status": "failed", "reason": "no answer from the model"}
    api_setup.request("PATCH", f"/v1/runs/{run}", failed)
    user = signed_in_page()
    page = user.page

    user.visit(f"/agents/{agent['id']}/sessions/chat%2F42")
    answer = page.get_by_role("listitem", name="assistant, entry 2")
    answer.get_by_role("link", name="Why").click()
    expect(page.get_by_role("note")).to_contain_text("no answer from the model")
    expect(page.get_by_role("region", name="Answer")).to_contain_text("No.")
    blocks = page.get_by_role("table", name="Prompt blocks")
    soul = blocks.get_by_role("row").filter(has_text="SOUL.md")
    expect(soul).to_contain_text("calmer tone after complaints")
    expect(blocks.get_by_role("row").filter(has_text="GUARDRAILS.md")).to_contain_text("recorded")
    user.check_accessibility()

    soul.get_by_role("link", name="SOUL.md").click()
    origin = page.get_by_label("Origin")
    expect(origin).to_contain_text("calmer tone after complaints")
    user.check_accessibility()
    origin.get_by_role("link", name="template v1 in the history").click()
    history = page.get_by_role("complementary", name="History")
    history.get_by_role("button", name="Read by").click()
    readers = history.get_by_role("region", name="Runs that read version 1")
    readers.get_by_role("link", name="answer").click()
    expect(page.get_by_role("region", name="Answers")).to_contain_text("No.")

    page.get_by_role("link", name="Time line").click()
    line = page.get_by_role("list", name="Time line")
    expect(line.get_by_role("listitem")).to_have_count(5)
    expect(line.get_by_role("listitem").nth(2)).to_contain_text("who_am_i")
    user.check_accessibility()
    line.get_by_role("link", name="No.").click()
    expect(page.get_by_role("listitem", name="assistant, entry 2")).to_be_visible()


def test_a_long_time_line_is_read_in_pages(api_setup: ApiSetup, signed_in_page: OpenPage) -> None:
    agent = api_setup.create_agent("Ada")
    body = {"agentId": agent["id"], "sessionId": "long"}
    run = api_setup.request("POST", "/v1/runs", body)["runId"]
    items = [{"role": "user", "content": f"question {n}"} for n in range(150)]
    path = f"/v1/agents/{agent['id']}/sessions/long/entries"
    api_setup.request("POST", path, {"items": items})
    user = signed_in_page()
    user.visit(f"/runs/{run}?view=timeline")
    rows = user.page.get_by_role("list", name="Time line").get_by_role("listitem")
    expect(rows).to_have_count(100)
    user.page.get_by_role("button", name="Load more").click()
    expect(rows).to_have_count(151)
