"""What a server cannot or need not give: lost bytes are told by name, an agent's key suffices."""

from __future__ import annotations

import hashlib
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import Hands, held
from tests.support.server_process import PLAIN, TOKEN, Live, serving

from carrel_client import Client, IncompleteWorkspace, NotFound, ServerError, Unauthenticated

LOST = "What nobody can find any more."


def owner(live: Live) -> httpx.Client:
    head = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=live.url, headers=head, timeout=60, verify=PLAIN)


def test_a_file_whose_bytes_are_lost_is_named_and_nothing_is_written(
    tmp_path: File, desk: File
) -> None:
    objects = tmp_path / "objects"
    place: dict[str, Any] = {"blobs_url": f"file://{objects}", "inline_bytes": "0"}
    with serving(tmp_path / "store", **place) as live, owner(live) as http:
        agent = Hands.of_new_agent(http)
        agent.put("kept.md", "kept")
        agent.put("lost.md", LOST)
    name = hashlib.sha256(LOST.encode()).hexdigest()
    [lost] = [file for file in objects.rglob("*") if file.is_file() and name in str(file)]
    lost.unlink()

    with serving(tmp_path / "store", **place) as live, Client(live.url, TOKEN) as client:
        with pytest.raises(IncompleteWorkspace) as refusal:
            client.materialize(agent.agent, desk)
        assert list(refusal.value.files) == ["lost.md"]
        assert not desk.exists()
        with pytest.raises(IncompleteWorkspace):
            client.agent(agent.agent).read()
        with pytest.raises((ServerError, NotFound)):
            client.agent(agent.agent).get("lost.md")

        result = client.materialize(agent.agent, desk, tolerate=["lost.md"])

        assert list(result.unavailable) == ["lost.md"]
        assert held(desk)["kept.md"] == b"kept"
        assert "lost.md" not in held(desk)
        with pytest.raises(IncompleteWorkspace) as refusal:
            client.materialize(agent.agent, desk, stale_ok=True)
        assert list(refusal.value.files) == ["lost.md"]

    with Client(live.url, TOKEN) as client:
        with pytest.raises(IncompleteWorkspace):
            client.materialize(agent.agent, desk, stale_ok=True)
        again = client.materialize(agent.agent, desk, stale_ok=True, tolerate=["lost.md"])
        assert (again.stale, list(again.unavailable)) == (True, ["lost.md"])


def test_whoever_stands_between_may_refuse_in_words_of_their_own() -> None:
    refused = httpx.MockTransport(lambda _: httpx.Response(401, text="who are you?"))
    with (
        Client("http://carrel", TOKEN, transport=refused) as client,
        pytest.raises(Unauthenticated),
    ):
        client.agent("ada").list()


def test_a_key_of_the_agents_own_is_enough(
    live: Live, hands: Hands, http: httpx.Client, desk: File
) -> None:
    hands.put("memory/lessons.md", "none yet")
    body = {"name": "runtime", "kind": "agent", "agentId": hands.agent}
    key = http.post("/v1/keys", json=body).json()["key"]
    with Client(live.url, key) as client:
        client.materialize(hands.agent, desk)
        client.agent(hands.agent).write_memory("lessons.md", "one")
        run = client.agent(hands.agent).start_run()
        assert run.workspace.get("memory/lessons.md").content == "one"
        assert client.materialize(hands.agent, desk).changed
    assert held(desk) == hands.served()
