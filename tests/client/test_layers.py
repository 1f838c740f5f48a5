"""Templates, defaults, workspaces, pins and history by the client, waiting or awaiting."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import Hands
from tests.e2e.servers import TOKEN, Live

from carrel_client import (
    AsyncClient,
    Client,
    Forbidden,
    InvalidResponse,
    NotFound,
    WorkspaceConflict,
    Conflict,
)

PATH = "GUARDRAILS.md"


def test_a_file_of_every_layer_is_written_read_and_removed(hands: Hands, client: Client) -> None:
    places = [
        client.template(hands.template),
        client.defaults,
        client.workspace("desk"),
        client.agent(hands.agent),
    ]
    for number, place in enumerate(places):
        name = f"{hands.agent}-{number}.md"
        was = place.put(name, "one", if_none_match="*", reason="begun")
        place.put(name, "two", if_match=was.etag)
        with pytest.raises(WorkspaceConflict):
            place.restore(name, 1, if_match=was.etag)
        assert place.restore(name, 1).content == "one"
        assert [each.version for each in place.history(name)] == [3, 2, 1]
        [last] = place.history(name, before=2)
        assert (last.reason, last.deleted, last.size) == ("begun", False, 3)
        assert "-one" in place.diff(name, 1, 2)
        assert name in [row.path for row in place.list(name)]
        assert place.explain(name).layers[0].version == 3
        place.delete(name)
        assert place.history(name)[0].deleted
        with pytest.raises(NotFound):
            place.get(name)


def test_a_pin_moves_to_what_was_reviewed_and_back(hands: Hands, client: Client) -> None:
    agent, template = client.agent(hands.agent), client.template(hands.template)
    [before] = [pin for pin in agent.pins() if pin.path == PATH]
    assert not before.update_available
    template.put(PATH, "Ask first.")
    [offered] = [pin for pin in agent.pins() if pin.path == PATH]
    assert offered.latest == "Ask first."
    assert offered.latest_sha256 == hashlib.sha256(b"Ask first.").hexdigest()
    with pytest.raises(WorkspaceConflict):
        agent.accept(PATH, "0" * 64)
    assert agent.accept(PATH, offered.latest_sha256).pinned_sha256 == offered.latest_sha256
    assert agent.roll_back(PATH).pinned_sha256 == before.pinned_sha256
    [result] = template.accept(PATH, offered.latest_sha256)
    assert (result.success, result.changed, result.error) == (True, True, None)
    with pytest.raises(Forbidden):
        agent.restore(PATH, 1)


def test_runs_tell_what_changed_and_can_be_done_again(hands: Hands, client: Client) -> None:
    agent = client.agent(hands.agent)
    agent.put("a.md", "one")
    run = agent.start_run()
    agent.put("a.md", "two")
    [change] = run.diff()
    assert (change.path, change.kind, change.before, change.after) == ("a.md", "changed", 1, 2)
    assert "-one" in run.diff_of("a.md")
    assert run.diff_of("SOUL.md") == ""
    twin = run.replay()
    assert twin.workspace.get("a.md").content == "one"
    assert [each.id for each in client.runs(agent=hands.agent)] == [twin.id, run.id]
    assert [each.id for each in client.runs(agent=hands.agent, before=twin.id)] == [run.id]
    with pytest.raises(Conflict):
        run.release()  # It has not ended yet.
    assert run.finish().release().facts["kept"] is False
    with pytest.raises(NotFound):
        run.workspace.list()


def test_records_come_in_order(hands: Hands, client: Client) -> None:
    rows = client.agents.list()
    assert [row["slug"] for row in rows] == list(client.agents.slugs())
    assert hands.template in [row["slug"] for row in client.templates.list()]
    owner = client.people.list()[0]
    assert client.people.get(owner["id"]) == owner


@pytest.mark.anyio
async def test_the_same_is_awaited(hands: Hands, live: Live) -> None:
    async with AsyncClient(live.url, TOKEN) as desk:
        await desk.template(hands.template).put("a.md", "one")
        assert (await desk.agent(hands.agent).explain("a.md")).source == "template"
        assert len(await desk.template(hands.template).history("a.md")) == 1
        assert await desk.agent(hands.agent).pins()
        assert await desk.runs(agent=hands.agent) == ()


@pytest.mark.parametrize("told", [[], {}, {"items": 1}, {"items": [1]}, {"items": [{}]}, None])
def test_what_is_no_answer_is_told(told: Any) -> None:
    wire = httpx.MockTransport(lambda _: httpx.Response(200, json=told))
    with Client("http://127.0.0.1", "t", transport=wire) as client:
        agent = client.agent("ada")
        for ask in (
            lambda: agent.history("a.md"),
            lambda: agent.explain("a.md"),
            agent.pins,
            lambda: agent.accept("a.md", "0"),
            lambda: client.template("t").accept("a.md", "0"),
            client.runs,
            client.agents.list,
            client.people.list,
            lambda: client.people.get("p"),
        ):
            with pytest.raises(InvalidResponse):
                ask()
