"""``carrel overview`` and ``carrel inbox``, and what the client returns for them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving

from carrel_client import Client

PATH = "GUARDRAILS.md"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one agent, for which an update waits and which overrides another file."""
    with serving(tmp_path_factory.mktemp("fleet")) as server:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=server.url, headers=headers, verify=PLAIN) as http:
            editor = AgentEditor.of_new_agent(http)
            editor.put("SOUL.md", "Calm.\n")
            http.patch(f"/v1/templates/{editor.template}", json={"name": "Support"})
            editor.put(PATH, "Be careful.\n", "templates")
            run = http.post("/v1/runs", json={"agentId": editor.agent}).json()["runId"]
            http.patch(f"/v1/runs/{run}", json={"status": "failed"}).raise_for_status()
            dreaming = {"dreaming": {"review": True, "minScore": 0, "minRecallCount": 1}}
            dreaming["dreaming"] |= {"minUniqueQueries": 1, "minUniqueDays": 1}
            http.patch(f"/v1/agents/{editor.agent}", json={"config": dreaming}).raise_for_status()
            memories = f"/v1/agents/{editor.agent}/memories"
            http.post(memories, json={"content": "Ada likes tea"}).raise_for_status()
            recall = {"arguments": {"query": "tea"}}
            http.post(f"/v1/agents/{editor.agent}/tools/recall", json=recall).raise_for_status()
            http.post(f"/v1/agents/{editor.agent}/dreams", json={}).raise_for_status()
        yield server


@pytest.fixture
def carrel(fleet: ServerProcess) -> CarrelCommand:
    return CarrelCommand(fleet.url)


def test_the_overview_is_printed_in_lines_and_tables(carrel: CarrelCommand) -> None:
    output = carrel.output("overview", "--days", "7")
    assert output.startswith("1 agent\nwaiting: 1 update, 0 approvals, 1 dream; 1 run failed in 24")
    assert "runs in 7 days: 1 failed\n" in output
    assert "memories: 1, 0 promoted in 7 days\n" in output
    assert re.search(rf"^{PATH} +0 +1 +0 +0$", output, re.M)
    assert re.search(r"^SOUL.md +1$", output, re.M)
    facts = carrel.json("overview", "--days", "7")
    assert (facts["agents"], len(facts["runsByDay"])) == (1, 7)
    assert carrel.json("overview", "--mine")["agents"] == 0
    assert carrel("overview", "--days", "0").exit_code == 2


def test_the_inbox_is_printed_by_update(carrel: CarrelCommand) -> None:
    output = carrel.output("inbox")
    assert output.startswith("1 update, 0 approvals, 1 dream\n")
    assert re.search(rf"^{PATH} +Support +1 +0$", output, re.M)
    facts = carrel.json("inbox")
    assert [(group["path"], group["count"]) for group in facts["groups"]] == [(PATH, 1)]
    assert carrel.output("inbox", "--mine") == "0 updates, 0 approvals, 0 dreams\n"


def test_the_client_returns_what_waits_and_the_overview(fleet: ServerProcess) -> None:
    with Client(fleet.url, TOKEN) as client:
        overview = client.overview(days=3)
        assert overview.waiting is not None
        assert (overview.agents, overview.waiting.failed_runs) == (1, 1)
        [rules] = [drift for drift in overview.drift if drift.path == PATH]
        assert (rules.up_to_date, rules.older, rules.overridden) == (0, 1, 0)
        assert [(item.path, item.agents) for item in overview.overrides] == [("SOUL.md", 1)]
        assert [day.failed for day in overview.runs_by_day] == [0, 0, 1]
        assert overview.memories[-1].total == 1

        [pin] = client.inbox_pins(path=PATH)
        assert (pin.path, pin.template_name, pin.overridden) == (PATH, "Support", False)
        assert client.inbox_pins(offered_by="defaults") == client.inbox_pins(mine=True) == ()
        [dream] = client.inbox_dreams()
        assert (dream.agent_id, dream.promoted) == (pin.agent_id, 1)
        assert client.inbox_dreams(mine=True) == ()
        assert [group.count for group in client.inbox().groups] == [1]
