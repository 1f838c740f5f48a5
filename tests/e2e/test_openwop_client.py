"""A published client of the protocol against a live server."""

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


def test_client_discovers_the_capabilities(client: OpenwopClient) -> None:
    capabilities = client.discovery_capabilities()

    assert capabilities.protocolVersion == "1.0"
    assert client.discovery_openapi()["openapi"].startswith("3.1")


def test_client_puts_reads_lists_and_deletes_files(client: OpenwopClient) -> None:
    created = client.put_workspace_file("a/b.md", PutWorkspaceFileRequest("one"))
    assert (created.version, created.content, created.contentType) == (1, "one", "text/markdown")
    changed = client.put_workspace_file(
        "a/b.md", PutWorkspaceFileRequest("two"), if_match=created.etag
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


def test_client_detects_a_stale_version(client: OpenwopClient) -> None:
    created = client.put_workspace_file("stale.md", PutWorkspaceFileRequest("one"))
    client.put_workspace_file("stale.md", PutWorkspaceFileRequest("two"))

    with pytest.raises(WopError) as refused:
        client.put_workspace_file(
            "stale.md", PutWorkspaceFileRequest("mine"), if_match=created.etag
        )

    assert refused.value.status == 409
    assert refused.value.envelope and refused.value.envelope.error == "workspace_conflict"
    assert refused.value.envelope.details == {"currentVersion": 2}


def test_request_repeated_with_one_key_is_done_once(client: OpenwopClient) -> None:
    body = PutWorkspaceFileRequest("once")
    first = client.put_workspace_file("once.md", body, idempotency_key="k-1")
    again = client.put_workspace_file("once.md", body, idempotency_key="k-1")

    assert first == again
    assert again.version == 1


def test_run_reads_the_workspace_as_it_was(client: OpenwopClient) -> None:
    client.put_workspace_file("ground.md", PutWorkspaceFileRequest("truth"))
    run = client.runs_create(CreateRunRequest("conformance-noop"), idempotency_key="run-1")
    fetched = client.runs_get(run.runId)

    assert (fetched.runId, fetched.workflowId, fetched.status) == (
        run.runId,
        "conformance-noop",
        "completed",
    )
    events = list(client.runs_events(run.runId, stream_mode="updates"))
    assert [event.type for event in events] == ["run.started", "run.completed"]
    assert [event.sequence for event in events] == [1, 2]


def test_client_polls_resumes_and_cancels_a_run(client: OpenwopClient) -> None:
    run = client.runs_create(CreateRunRequest("nightly"))
    client.runs_cancel(run.runId)
    assert client.runs_cancel(run.runId).status == "cancelled"
    page = client.runs_poll_events(run.runId, last_sequence=0, timeout_seconds=1)
    assert ([event.sequence for event in page.events], page.isComplete) == ([1, 2], True)
    events = client.runs_events(run.runId, last_event_id=page.events[0].eventId)
    assert [event.type for event in events] == ["run.cancelled"]
    with pytest.raises(WopError) as refused:
        client.runs_cancel(client.runs_create(CreateRunRequest("conformance-noop")).runId)
    assert refused.value.status == 409
    assert client.workflows_get("conformance-noop")["id"] == "conformance-noop"
