"""Runs: list, snapshot files and prompt, changes, events and actions."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect
from tests.ui.browser import NARROW
from tests.ui.conftest import ApiSetup, OpenPage


def _run(api_setup: ApiSetup, agent: Any, **fields: Any) -> str:
    return str(api_setup.request("POST", "/v1/runs", {"agentId": agent["id"], **fields})["runId"])


def _write(api_setup: ApiSetup, agent: Any, path: str, content: str, run: str) -> None:
    body = {"content": content, "acceptTemplateUpdate": True}
    api_setup.request("PUT", f"/v1/agents/{agent['id']}/files/{path}", body, **{"Carrel-Run": run})


def test_runs_are_listed_filtered_and_paged(api_setup: ApiSetup, signed_in_page: OpenPage) -> None:
    agent = api_setup.create_agent("Many")
    name = f"nightly {api_setup.suffix}"
    for _ in range(51):
        run = _run(api_setup, agent, workflowId=name)
    api_setup.request("PATCH", f"/v1/runs/{run}", {"status": "failed"})
    user = signed_in_page()
    page = user.page
    user.visit("/runs")
    rows = page.get_by_role("table", name="Runs").get_by_role("row")
    expect(rows.filter(has_text=name).first).to_contain_text("failed")
    page.get_by_label("Agent", exact=True).fill(agent["slug"])
    expect(page).to_have_url(re.compile(f"agent={agent['slug']}"))
    expect(rows).to_have_count(51)
    page.get_by_role("button", name="Load more").click()
    expect(rows).to_have_count(52)
    page.get_by_label("Status").select_option("failed")
    expect(rows).to_have_count(2)
    page.get_by_label("Status").select_option("cancelled")
    expect(page.get_by_text("No matching runs.")).to_be_visible()
    page.get_by_label("Status").select_option("")
    # Both filters are in the URL: a second change must not start from the old one.
    expect(page).not_to_have_url(re.compile("status="))
    page.get_by_role("button", name="Clear agent filter").click()
    expect(page).not_to_have_url(re.compile("agent="))
    expect(rows.filter(has_text=name).first).to_be_visible()

    # Runs started by others appear without a reload.
    _run(api_setup, agent, workflowId=f"newest {api_setup.suffix}")
    expect(page.get_by_role("link", name=f"newest {api_setup.suffix}")).to_be_visible()
    user.check_accessibility()


def test_a_run_shows_snapshot_files_prompt_and_changes_since(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    template = api_setup.create_template("Support", SOUL_md="{{AGENT_NAME}} is brisk.")
    agent = api_setup.create_agent("Ada", template)
    own = f"/v1/agents/{agent['id']}"
    api_setup.put_file(own, "notes/plan.md", "Ask Ines.")
    run = _run(api_setup, agent, workflowId="morning round")
    _write(api_setup, agent, "SOUL.md", "Slow.", run)
    api_setup.request("DELETE", f"{own}/files/notes/plan.md")
    user = signed_in_page()
    page = user.page
    user.visit(f"/runs/{run}")

    details = page.get_by_label("Details", exact=True)
    expect(details.get_by_role("link", name="Ada")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    files = page.get_by_role("navigation", name="Snapshot files")
    files.get_by_role("link", name="SOUL.md").click()
    expect(page.get_by_role("article", name="SOUL.md")).to_contain_text("Ada is brisk.")
    files.get_by_role("link", name="notes/plan.md").click()
    expect(page.get_by_role("article", name="notes/plan.md")).to_contain_text("Ask Ines.")

    page.get_by_role("navigation", name="Run").get_by_role("link", name="Prompt").click()
    expect(page.get_by_role("region", name="Text of the main prompt")).to_contain_text(
        "Ada is brisk."
    )
    blocks = page.get_by_role("table", name="Blocks of the main prompt")
    blocks.get_by_role("link", name="SOUL.md").click()
    expect(page.get_by_role("article", name="SOUL.md")).to_contain_text("Ada is brisk.")

    page.get_by_role("link", name="Changes since").click()
    changed = page.get_by_role("navigation", name="Changed files")
    expect(changed.get_by_role("link", name="notes/plan.md removed")).to_be_visible()
    changed.get_by_role("link", name="SOUL.md changed").click()
    diff = page.get_by_role("region", name="Diff")
    expect(diff).to_contain_text("-Ada is brisk.")
    expect(diff).to_contain_text("+Slow.")
    api_setup.put_file(own, "later.md", "new")
    expect(changed.get_by_role("link", name="later.md added")).to_be_visible()
    user.check_accessibility()


def test_events_are_live_and_a_run_is_ended_replayed_and_its_snapshot_deleted(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/runs")
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    page.get_by_role("button", name="Start run").click()
    page.get_by_label("Workflow").fill("tidy up")
    page.get_by_label("Scope").select_option("main")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("tidy up")
    run = page.url.rsplit("/", 1)[1]

    page.get_by_role("link", name="Time line").click()
    events = page.get_by_role("list", name="Time line")
    expect(events.get_by_role("listitem")).to_have_count(1)
    _write(api_setup, agent, "notes/a.md", "one", run)
    expect(events.get_by_role("link", name="notes/a.md")).to_be_visible()
    _end_run(page)
    expect(events.get_by_text("run.failed")).to_be_visible()
    expect(page.get_by_text("Run ended.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("failed")
    expect(page.get_by_role("note")).to_contain_text("Reason: no answer from the model")
    user.check_accessibility()

    page.get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog", name="Replay this run?")
    expect(dialog).to_contain_text("Your runtime drives the new run")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="End run")).to_have_count(0)
    page.get_by_role("button", name="Replay").click()
    dialog.get_by_role("button", name="Start replay").click()
    details = page.get_by_label("Details", exact=True)
    expect(details.get_by_text("Replay of")).to_be_visible()
    details.get_by_role("link", name=run).click()
    expect(details.get_by_text("Recent replays")).to_be_visible()
    page.get_by_role("button", name="Delete snapshot").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete snapshot").click()
    expect(page.get_by_text("The snapshot was deleted.")).to_be_visible()
    expect(page.get_by_role("button", name="Replay")).to_have_count(0)


def _end_run(page: Page) -> None:
    page.get_by_role("button", name="End run").click()
    page.get_by_role("dialog").get_by_label("Status").select_option("failed")
    page.get_by_role("dialog").get_by_label("Reason").fill("no answer from the model")
    page.get_by_role("dialog").get_by_role("button", name="End run").click()


def test_hostile_names_stay_text_and_do_not_break_the_layout(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    hostile = "<script>document.title='x'</script>\u202e" + "w" * 120
    body = {"slug": f"hostile-{api_setup.suffix}", "name": hostile}
    agent = api_setup.request("POST", "/v1/agents", body)
    api_setup.put_file(f"/v1/agents/{agent['id']}", "n" * 200 + "/<b>bold<_b>.md", "<img src=x>")
    run = _run(api_setup, agent, workflowId="w" * 256)
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit(f"/runs?agent={agent['slug']}")
    expect(page.get_by_role("link", name="<script>document")).to_contain_text("␣")
    page.get_by_role("link", name=re.compile("^wwwww")).click()
    expect(page).to_have_url(re.compile(run))
    page.get_by_role("navigation", name="Snapshot files").get_by_role("link", name="nnnnn").click()
    expect(page.get_by_role("article").locator("pre")).to_have_text("<img src=x>")
    assert page.evaluate("document.querySelector('#main').scrollWidth") <= NARROW[0]
