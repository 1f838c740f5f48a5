"""A published client of the protocol, which knows nothing of us, drives a live server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File

import pytest
from openwop_client import (  # type: ignore[import-untyped]  # it ships no types
    CreateRunRequest,
    OpenwopClient,
    PutWorkspaceFileRequest,
    WopError,
)
from tests.support.server_process import TOKEN, serving


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenwopClient]:
    data: File = tmp_path_factory.mktemp("openwop")
    with serving(data) as live:
        yield OpenwopClient(live.url, TOKEN)


def test_it_discovers_what_we_offer(client: OpenwopClient) -> None:
    found = client.discovery_capabilities()

    assert found.protocolVersion == "1.0"
    assert client.discovery_openapi()["openapi"].startswith("3.1")


def test_it_puts_reads_lists_and_deletes_files(client: OpenwopClient) -> None:
    made = client.put_workspace_file("a/b.md", PutWorkspaceFileRequest("one"))
    assert (made.version, made.content, made.contentType) == (1, "one", "text/markdown")
    changed = client.put_workspace_file(
        "a/b.md", PutWorkspaceFileRequest("two"), if_match=made.etag
    )

    assert changed.version == 2
    assert client.get_workspace_file("a/b.md") == changed
    earlier = client.get_workspace_file("a/b.md", version=1)
    assert earlier and earlier.content == "one"
    listed = client.list_workspace_files(prefix="a/")
    assert listed and [(file.path, file.version) for file in listed] == [("a/b.md", 2)]
    assert client.delete_workspace_file("a/b.md") is True
    assert client.delete_workspace_file("a/b.md") is False
    assert client.get_workspace_file("a/b.md") is None


def test_it_learns_that_its_copy_is_stale(client: OpenwopClient) -> None:
    made = client.put_workspace_file("stale.md", PutWorkspaceFileRequest("one"))
    client.put_workspace_file("stale.md", PutWorkspaceFileRequest("two"))

    with pytest.raises(WopError) as refused:
        client.put_workspace_file("stale.md", PutWorkspaceFileRequest("mine"), if_match=made.etag)

    assert refused.value.status == 409
    assert refused.value.envelope and refused.value.envelope.error == "workspace_conflict"
    assert refused.value.envelope.details == {"currentVersion": 2}


def test_what_it_sends_twice_with_one_key_is_done_once(client: OpenwopClient) -> None:
    body = PutWorkspaceFileRequest("once")
    first = client.put_workspace_file("once.md", body, idempotency_key="k-1")
    again = client.put_workspace_file("once.md", body, idempotency_key="k-1")

    assert first == again
    assert again.version == 1


def test_its_runs_see_the_workspace_as_it_was(client: OpenwopClient) -> None:
    client.put_workspace_file("ground.md", PutWorkspaceFileRequest("truth"))
    run = client.runs_create(CreateRunRequest("conformance-noop"), idempotency_key="run-1")
    seen = client.runs_get(run.runId)

    assert (seen.runId, seen.workflowId, seen.status) == (
        run.runId,
        "conformance-noop",
        "completed",
    )
    events = list(client.runs_events(run.runId, stream_mode="updates"))
    assert [event.type for event in events] == ["run.started", "run.completed"]
    assert [event.sequence for event in events] == [1, 2]
