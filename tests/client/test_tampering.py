"""Modified directories and invalid listings: the result is what is served, or unchanged."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import (
    STATE,
    AgentEditor,
    FaultyTransport,
    client_over,
    read_directory,
    stat_directory,
)
from tests.support.server_process import ServerProcess

from carrel_client import (
    CarrelError,
    Client,
    IncompleteWorkspace,
    InvalidResponse,
    NotACarrelDirectory,
    UnsafePath,
)

TAMPERINGS: dict[str, Any] = {
    "changed": lambda directory: (directory / "a.md").write_text("z"),
    "missing": lambda directory: (directory / "a.md").unlink(),
    "extra": lambda directory: (directory / "extra.md").write_text(""),
    "extra deep": lambda directory: (directory / "b/extra.md").write_text(""),
    "an empty directory": lambda directory: (directory / "empty").mkdir(),
    "a link to the same": lambda directory: relinked(directory / "a.md"),
    "a directory that is a link": lambda directory: relinked(directory / "b"),
    "a link out": lambda directory: (directory / "out").symlink_to("/"),
    "a file for a directory": lambda directory: remade(directory / "b"),
    "a pipe": lambda directory: piped(directory / "a.md"),
    "a socket": lambda directory: bound(directory / "extra"),
    "a name that is no text": lambda directory: File(
        os.fsdecode(bytes(directory) + b"/\xff")
    ).touch(),
    "another etag": lambda directory: restated(directory, etag='"other"'),
    "another agent": lambda directory: restated(directory, agent="other"),
    "another agent by id": lambda directory: restated(directory, agent_id="agt_other"),
}

FORGERIES: dict[str, Any] = {
    "nonsense": lambda directory: (directory / STATE).write_text("{"),
    "nothing": lambda directory: (directory / STATE).write_text(""),
    "no meaning": lambda directory: (directory / STATE).write_text("[" * 100_000),
    "bytes": lambda directory: (directory / STATE).write_bytes(b"\xff\x00"),
    "another program's": lambda directory: (directory / STATE).write_text('{"name": "mine"}'),
    "another format": lambda directory: restated(directory, format=99),
    "an etag that breaks lines": lambda directory: restated(directory, etag='"a\r\nb"'),
    "an etag that is a number": lambda directory: restated(directory, etag=5),
    "an id that is a number": lambda directory: restated(directory, agent_id=5),
    "a server that is a list": lambda directory: restated(directory, server=[]),
    "files that are none": lambda directory: restated(directory, files=[]),
    "files of another fingerprint": lambda directory: restated(directory, fingerprint="0" * 64),
    "a field too many": lambda directory: restated(directory, more=1),
}


def relinked(path: File) -> None:
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def remade(directory: File) -> None:
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    directory.write_text("")


def piped(path: File) -> None:
    path.unlink()
    os.mkfifo(path)


def bound(path: File) -> None:
    before = os.getcwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(before)


def restated(directory: File, **facts: Any) -> None:
    state = json.loads((directory / STATE).read_text("utf-8"))
    (directory / STATE).write_text(json.dumps(state | facts), "utf-8")


@pytest.mark.parametrize("how", TAMPERINGS)
def test_modified_directory_is_written_again(
    client: Client, editor: AgentEditor, directory: File, how: str
) -> None:
    editor.put("a.md", "x")
    editor.put("b/c.md", "y")
    client.materialize(editor.agent, directory)
    TAMPERINGS[how](directory)

    client.materialize(editor.agent, directory)

    assert read_directory(directory) == editor.served()
    assert not any(path.is_symlink() for path in directory.rglob("*"))
    assert not client.materialize(editor.agent, directory).changed
    assert os.listdir(directory.parent / ".directory.carrel") == ["lock"]


@pytest.mark.parametrize("how", FORGERIES)
def test_directory_with_an_invalid_state_file_is_refused(
    client: Client, editor: AgentEditor, directory: File, how: str
) -> None:
    editor.put("a.md", "x")
    client.materialize(editor.agent, directory)
    FORGERIES[how](directory)
    (directory / "mine.txt").write_text("mine")
    before = stat_directory(directory)

    for stale_ok in (False, True):
        with pytest.raises(NotACarrelDirectory, match=str(directory / STATE)):
            client.materialize(editor.agent, directory, stale_ok=stale_ok)

    assert stat_directory(directory) == before


def test_links_in_the_old_directory_are_not_followed(
    client: Client, editor: AgentEditor, directory: File, tmp_path: File
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "a.md").write_text("precious")
    editor.put("a.md", "x")
    editor.put("b/a.md", "x")
    client.materialize(editor.agent, directory)
    (directory / "a.md").unlink()
    (directory / "a.md").symlink_to(precious / "a.md")
    (directory / "b/a.md").unlink()
    (directory / "b").rmdir()
    (directory / "b").symlink_to(precious)

    client.materialize(editor.agent, directory)

    assert (precious / "a.md").read_text() == "precious"
    assert read_directory(directory) == editor.served()


class TamperingTransport(FaultyTransport):
    """A server that changes one row of the listing."""

    def __init__(self, **row: Any) -> None:
        super().__init__()
        self.row = row

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        answer.read()
        rows = answer.json()["files"] if answer.status_code == 200 else []
        rows = [row for row in rows if row["path"] == "a.md"]
        body = {"files": [*rows, rows[0] | {"path": "lie.md"} | self.row]} if rows else {}
        text = json.dumps(body)
        return httpx.Response(answer.status_code, text=text, headers={"ETag": '"lie"'})


FORGED_ROWS: list[tuple[type[CarrelError], dict[str, Any]]] = [
    (UnsafePath, {"path": "../escaped.md"}),
    (UnsafePath, {"path": "/tmp/escaped.md"}),
    (UnsafePath, {"path": "a.md"}),
    (UnsafePath, {"path": "a.md/b"}),
    (UnsafePath, {"path": STATE}),
    (InvalidResponse, {"path": None}),
    (InvalidResponse, {"content": "not what its digest says"}),
    (InvalidResponse, {"content": "\ud800"}),
    (IncompleteWorkspace, {"content": None}),
    (IncompleteWorkspace, {"error": "its pin cannot be found"}),
]


@pytest.mark.parametrize(("kind", "forged"), FORGED_ROWS, ids=str)
def test_invalid_listing_is_not_written(
    live: ServerProcess,
    client: Client,
    editor: AgentEditor,
    directory: File,
    kind: type[CarrelError],
    forged: Any,
) -> None:
    editor.put("a.md", "x")
    client.materialize(editor.agent, directory)
    editor.put("a.md", "newer")
    before = stat_directory(directory.parent)

    with client_over(TamperingTransport(**forged), live.url) as tampered, pytest.raises(kind):
        tampered.materialize(editor.agent, directory)

    assert stat_directory(directory.parent).keys() == before.keys()
    assert stat_directory(directory) == {path: before[path] for path in stat_directory(directory)}


def test_unavailable_file_fails_unless_tolerated(
    live: ServerProcess, client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    with client_over(TamperingTransport(error="its pin cannot be found"), live.url) as tampered:
        for tolerate in ((), ("other.md",)):
            with pytest.raises(IncompleteWorkspace) as refusal:
                tampered.materialize(editor.agent, directory, tolerate=tolerate)
            assert refusal.value.files == {"lie.md": "its pin cannot be found"}
            assert "lie.md" in str(refusal.value)
            assert not directory.exists()

        result = tampered.materialize(editor.agent, directory, tolerate=["lie.md"])
        assert result.unavailable == {"lie.md": "its pin cannot be found"}
        assert result.etag is None
        assert read_directory(directory) == {"a.md": b"x"}

    mended = client.materialize(editor.agent, directory)
    assert (mended.unavailable, read_directory(directory)) == ({}, editor.served())
