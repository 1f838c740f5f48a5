"""Lost bytes are reported by name, and the key of an agent is sufficient."""

from __future__ import annotations

import hashlib
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import AgentEditor, read_directory
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving

from carrel_client import Client, IncompleteWorkspace, NotFound, ServerError, Unauthenticated

LOST = "Lost content."


def owner(live: ServerProcess) -> httpx.Client:
    head = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=live.url, headers=head, timeout=60, verify=PLAIN)


def test_file_with_lost_bytes_is_named_and_nothing_is_written(
    tmp_path: File, directory: File
) -> None:
    objects = tmp_path / "objects"
    place: dict[str, Any] = {"blobs_url": f"file://{objects}", "inline_bytes": "0"}
    with serving(tmp_path / "store", **place) as live, owner(live) as http:
        agent = AgentEditor.of_new_agent(http)
        agent.put("kept.md", "kept")
        agent.put("lost.md", LOST)
    name = hashlib.sha256(LOST.encode()).hexdigest()
    [lost] = [file for file in objects.rglob("*") if file.is_file() and name in str(file)]
    lost.unlink()

    with serving(tmp_path / "store", **place) as live, Client(live.url, TOKEN) as client:
        with pytest.raises(IncompleteWorkspace) as refusal:
            client.materialize(agent.agent, directory)
        assert list(refusal.value.files) == ["lost.md"]
        assert not directory.exists()
        with pytest.raises(IncompleteWorkspace):
            client.agent(agent.agent).read()
        with pytest.raises((ServerError, NotFound)):
            client.agent(agent.agent).get("lost.md")

        result = client.materialize(agent.agent, directory, tolerate=["lost.md"])

        assert list(result.unavailable) == ["lost.md"]
        assert read_directory(directory)["kept.md"] == b"kept"
        assert "lost.md" not in read_directory(directory)
        with pytest.raises(IncompleteWorkspace) as refusal:
            client.materialize(agent.agent, directory, stale_ok=True)
        assert list(refusal.value.files) == ["lost.md"]

    with Client(live.url, TOKEN) as client:
        with pytest.raises(IncompleteWorkspace):
            client.materialize(agent.agent, directory, stale_ok=True)
        again = client.materialize(agent.agent, directory, stale_ok=True, tolerate=["lost.md"])
        assert (again.stale, list(again.unavailable)) == (True, ["lost.md"])


def test_proxy_may_refuse_without_an_envelope() -> None:
    refused = httpx.MockTransport(lambda _: httpx.Response(401, text="who are you?"))
    with (
        Client("http://carrel", TOKEN, transport=refused) as client,
        pytest.raises(Unauthenticated),
    ):
        client.agent("ada").list()


def test_key_of_the_agent_is_sufficient(
    live: ServerProcess, editor: AgentEditor, http: httpx.Client, directory: File
) -> None:
    editor.put("memory/lessons.md", "none yet")
    body = {"name": "runtime", "kind": "agent", "agentId": editor.agent}
    key = http.post("/v1/keys", json=body).json()["key"]
    with Client(live.url, key) as client:
        client.materialize(editor.agent, directory)
        client.agent(editor.agent).write_memory("lessons.md", "one")
        run = client.agent(editor.agent).start_run()
        assert run.workspace.get("memory/lessons.md").content == "one"
        assert client.materialize(editor.agent, directory).changed
    assert read_directory(directory) == editor.served()
