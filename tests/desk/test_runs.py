"""Runs: the list of them, and each as a time machine."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect
from tests.desk.browsing import NARROW
from tests.desk.conftest import Office, Seating


def _run(office: Office, agent: Any, **asked: Any) -> str:
    return str(office.ask("POST", "/v1/runs", {"agentId": agent["id"], **asked})["runId"])


def _written(office: Office, agent: Any, path: str, content: str, run: str) -> None:
    body = {"content": content, "acceptTemplateUpdate": True}
    office.ask("PUT", f"/v1/agents/{agent['id']}/files/{path}", body, **{"Carrel-Run": run})


def test_runs_are_listed_narrowed_and_paged(office: Office, seat: Seating) -> None:
    agent = office.agent("Many")
    name = f"nightly {office.mark}"
    for _ in range(51):
        run = _run(office, agent, workflowId=name)
    office.ask("PATCH", f"/v1/runs/{run}", {"status": "failed"})
    someone = seat()
    page = someone.page
    someone.visit("/runs")
    rows = page.get_by_role("table", name="Runs").get_by_role("row")
    expect(rows.filter(has_text=name).first).to_contain_text("failed")
    page.get_by_label("Agent", exact=True).fill(agent["slug"])
    expect(page).to_have_url(re.compile(f"agent={agent['slug']}"))
    expect(rows).to_have_count(51)
    page.get_by_role("button", name="More runs").click()
    expect(rows).to_have_count(52)
    page.get_by_label("Status").select_option("failed")
    expect(rows).to_have_count(2)
    page.get_by_label("Status").select_option("cancelled")
    expect(page.get_by_text("None of the latest 51 runs is cancelled.")).to_be_visible()
    page.get_by_label("Status").select_option("")
    page.get_by_role("button", name="Runs of all agents").click()
    expect(rows.filter(has_text=name).first).to_be_visible()

    # What others start appears without reload.
    _run(office, agent, workflowId=f"newest {office.mark}")
    expect(page.get_by_role("link", name=f"newest {office.mark}")).to_be_visible()
    someone.look_for_barriers()


def test_a_run_shows_files_and_prompt_then_and_what_has_changed_since(
    office: Office, seat: Seating
) -> None:
    template = office.template("Support", SOUL_md="{{AGENT_NAME}} is brisk.")
    agent = office.agent("Ada", template)
    own = f"/v1/agents/{agent['id']}"
    office.put(own, "notes/plan.md", "Ask Ines.")
    run = _run(office, agent, workflowId="morning round")
    _written(office, agent, "SOUL.md", "Slow.", run)
    office.ask("DELETE", f"{own}/files/notes/plan.md")
    someone = seat()
    page = someone.page
    someone.visit(f"/runs/{run}")

    facts = page.get_by_label("Facts of the run")
    expect(facts.get_by_role("link", name="Ada")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    files = page.get_by_role("navigation", name="Files then")
    files.get_by_role("link", name="SOUL.md").click()
    expect(page.get_by_role("article", name="SOUL.md")).to_contain_text("Ada is brisk.")
    files.get_by_role("link", name="notes/plan.md").click()
    expect(page.get_by_role("article", name="notes/plan.md")).to_contain_text("Ask Ines.")

    page.get_by_role("link", name="Prompt then").click()
    expect(page.get_by_role("region", name="Text of the main prompt")).to_contain_text(
        "Ada is brisk."
    )
    blocks = page.get_by_role("table", name="Blocks of the main prompt")
    blocks.get_by_role("link", name="SOUL.md").click()
    expect(page.get_by_role("article", name="SOUL.md")).to_contain_text("Ada is brisk.")

    page.get_by_role("link", name="Changed since").click()
    changed = page.get_by_role("navigation", name="Changed files")
    expect(changed.get_by_role("link", name="notes/plan.md removed")).to_be_visible()
    changed.get_by_role("link", name="SOUL.md changed").click()
    diff = page.get_by_role("region", name="Difference")
    expect(diff).to_contain_text("-Ada is brisk.")
    expect(diff).to_contain_text("+Slow.")
    office.put(own, "later.md", "new")
    expect(changed.get_by_role("link", name="later.md added")).to_be_visible()
    someone.look_for_barriers()


def test_events_come_live_and_a_run_is_ended_replayed_and_let_go(
    office: Office, seat: Seating
) -> None:
    agent = office.agent("Ada")
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/runs")
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    page.get_by_role("button", name="Start a run").click()
    page.get_by_label("Workflow").fill("tidy up")
    page.get_by_label("Scope").select_option("main")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("tidy up")
    run = page.url.rsplit("/", 1)[1]

    page.get_by_role("link", name="Events").click()
    events = page.get_by_role("list", name="Events of the run")
    expect(events.get_by_role("listitem")).to_have_count(1)
    _written(office, agent, "notes/a.md", "one", run)
    expect(events.get_by_role("link", name="notes/a.md")).to_be_visible()
    _end(page)
    expect(events.get_by_text("run.failed")).to_be_visible()
    expect(page.get_by_text("The run has ended: this is all.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("failed")
    someone.look_for_barriers()

    page.get_by_role("button", name="Replay").click()
    facts = page.get_by_label("Facts of the run")
    expect(facts.get_by_text("Replay of")).to_be_visible()
    facts.get_by_role("link", name=run).click()
    expect(facts.get_by_text("Latest replays")).to_be_visible()
    page.get_by_role("button", name="Let go").click()
    page.get_by_role("dialog").get_by_role("button", name="Let go").click()
    expect(page.get_by_text("The snapshot was let go: what this run saw")).to_be_visible()
    expect(page.get_by_role("button", name="Replay")).to_have_count(0)


def _end(page: Page) -> None:
    page.get_by_role("button", name="End run").click()
    page.get_by_label("How did it end?").select_option("failed")
    page.get_by_role("dialog").get_by_role("button", name="End run").click()


def test_names_of_others_do_nothing_and_break_nothing(office: Office, seat: Seating) -> None:
    hostile = "<script>document.title='x'</script>\u202e" + "w" * 120
    body = {"slug": f"hostile-{office.mark}", "name": hostile}
    agent = office.ask("POST", "/v1/agents", body)
    office.put(f"/v1/agents/{agent['id']}", "n" * 200 + "/<b>bold<_b>.md", "<img src=x>")
    run = _run(office, agent, workflowId="w" * 256)
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit(f"/runs?agent={agent['slug']}")
    expect(page.get_by_role("link", name="<script>document")).to_contain_text("␣")
    page.get_by_role("link", name=re.compile("^wwwww")).click()
    expect(page).to_have_url(re.compile(run))
    page.get_by_role("navigation", name="Files then").get_by_role("link", name="nnnnn").click()
    expect(page.get_by_role("article").locator("pre")).to_have_text("<img src=x>")
    assert page.evaluate("document.querySelector('#main').scrollWidth") <= NARROW[0]
