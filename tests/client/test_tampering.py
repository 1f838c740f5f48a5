"""Whatever became of a directory or of a listing: what is there is what is served, or untouched."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import STATE, Hands, Wire, held, look, over
from tests.support.server_process import Live

from carrel_client import (
    CarrelError,
    Client,
    IncompleteWorkspace,
    InvalidResponse,
    NotACarrelDirectory,
    UnsafePath,
)

TAMPERINGS: dict[str, Any] = {
    "changed": lambda desk: (desk / "a.md").write_text("z"),
    "missing": lambda desk: (desk / "a.md").unlink(),
    "extra": lambda desk: (desk / "extra.md").write_text(""),
    "extra deep": lambda desk: (desk / "b/extra.md").write_text(""),
    "an empty directory": lambda desk: (desk / "empty").mkdir(),
    "a link to the same": lambda desk: relinked(desk / "a.md"),
    "a directory that is a link": lambda desk: relinked(desk / "b"),
    "a link out": lambda desk: (desk / "out").symlink_to("/"),
    "a file for a directory": lambda desk: remade(desk / "b"),
    "a pipe": lambda desk: piped(desk / "a.md"),
    "a socket": lambda desk: bound(desk / "extra"),
    "a name that is no text": lambda desk: File(os.fsdecode(bytes(desk) + b"/\xff")).touch(),
    "another etag": lambda desk: restated(desk, etag='"other"'),
    "another agent": lambda desk: restated(desk, agent="other"),
    "another agent by id": lambda desk: restated(desk, agent_id="agt_other"),
}

FORGERIES: dict[str, Any] = {
    "nonsense": lambda desk: (desk / STATE).write_text("{"),
    "nothing": lambda desk: (desk / STATE).write_text(""),
    "no meaning": lambda desk: (desk / STATE).write_text("[" * 100_000),
    "bytes": lambda desk: (desk / STATE).write_bytes(b"\xff\x00"),
    "somebody else's": lambda desk: (desk / STATE).write_text('{"name": "mine"}'),
    "another format": lambda desk: restated(desk, format=99),
    "an etag that breaks lines": lambda desk: restated(desk, etag='"a\r\nb"'),
    "an etag that is a number": lambda desk: restated(desk, etag=5),
    "an id that is a number": lambda desk: restated(desk, agent_id=5),
    "a server that is a list": lambda desk: restated(desk, server=[]),
    "files that are none": lambda desk: restated(desk, files=[]),
    "files of another fingerprint": lambda desk: restated(desk, fingerprint="0" * 64),
    "a field too many": lambda desk: restated(desk, more=1),
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


def restated(desk: File, **facts: Any) -> None:
    state = json.loads((desk / STATE).read_text("utf-8"))
    (desk / STATE).write_text(json.dumps(state | facts), "utf-8")


@pytest.mark.parametrize("how", TAMPERINGS)
def test_a_directory_that_was_tampered_with_is_made_anew(
    client: Client, hands: Hands, desk: File, how: str
) -> None:
    hands.put("a.md", "x")
    hands.put("b/c.md", "y")
    client.materialize(hands.agent, desk)
    TAMPERINGS[how](desk)

    client.materialize(hands.agent, desk)

    assert held(desk) == hands.served()
    assert not any(path.is_symlink() for path in desk.rglob("*"))
    assert not client.materialize(hands.agent, desk).changed
    assert os.listdir(desk.parent / ".desk.carrel") == ["lock"]


@pytest.mark.parametrize("how", FORGERIES)
def test_a_directory_whose_manifest_is_none_is_not_taken_for_ours(
    client: Client, hands: Hands, desk: File, how: str
) -> None:
    hands.put("a.md", "x")
    client.materialize(hands.agent, desk)
    FORGERIES[how](desk)
    (desk / "mine.txt").write_text("mine")
    before = look(desk)

    for stale_ok in (False, True):
        with pytest.raises(NotACarrelDirectory, match=str(desk / STATE)):
            client.materialize(hands.agent, desk, stale_ok=stale_ok)

    assert look(desk) == before


def test_no_link_in_the_old_directory_is_followed(
    client: Client, hands: Hands, desk: File, tmp_path: File
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "a.md").write_text("precious")
    hands.put("a.md", "x")
    hands.put("b/a.md", "x")
    client.materialize(hands.agent, desk)
    (desk / "a.md").unlink()
    (desk / "a.md").symlink_to(precious / "a.md")
    (desk / "b/a.md").unlink()
    (desk / "b").rmdir()
    (desk / "b").symlink_to(precious)

    client.materialize(hands.agent, desk)

    assert (precious / "a.md").read_text() == "precious"
    assert held(desk) == hands.served()


class Lying(Wire):
    """A server of which one row of the listing is not what it should be."""

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


LIES: list[tuple[type[CarrelError], dict[str, Any]]] = [
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


@pytest.mark.parametrize(("kind", "lie"), LIES, ids=str)
def test_a_listing_that_cannot_be_trusted_is_not_written(
    live: Live, client: Client, hands: Hands, desk: File, kind: type[CarrelError], lie: Any
) -> None:
    hands.put("a.md", "x")
    client.materialize(hands.agent, desk)
    hands.put("a.md", "newer")
    before = look(desk.parent)

    with over(Lying(**lie), live.url) as deceived, pytest.raises(kind):
        deceived.materialize(hands.agent, desk)

    assert look(desk.parent).keys() == before.keys()
    assert look(desk) == {path: before[path] for path in look(desk)}


def test_a_file_that_cannot_be_given_fails_all_by_name_unless_it_is_tolerated(
    live: Live, client: Client, hands: Hands, desk: File
) -> None:
    hands.put("a.md", "x")
    with over(Lying(error="its pin cannot be found"), live.url) as deceived:
        for tolerate in ((), ("other.md",)):
            with pytest.raises(IncompleteWorkspace) as refusal:
                deceived.materialize(hands.agent, desk, tolerate=tolerate)
            assert refusal.value.files == {"lie.md": "its pin cannot be found"}
            assert "lie.md" in str(refusal.value)
            assert not desk.exists()

        result = deceived.materialize(hands.agent, desk, tolerate=["lie.md"])
        assert result.unavailable == {"lie.md": "its pin cannot be found"}
        assert result.etag is None
        assert held(desk) == {"a.md": b"x"}

    mended = client.materialize(hands.agent, desk)
    assert (mended.unavailable, held(desk)) == ({}, hands.served())
