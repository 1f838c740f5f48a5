"""Commits, moves, copies and directories by the client, over every driver."""

from __future__ import annotations

from typing import Any

import pytest

import carrel
from carrel_client import CopyFile, DeleteFile, MoveFile, PutFile

pytestmark = pytest.mark.anyio


async def test_changes_are_committed_together(api: Any) -> None:
    workspace = api.workspace()
    old = await workspace.put("old.md", "old")
    gone = await workspace.put("gone.md", "gone")

    result = await workspace.commit(
        [
            PutFile(path="new.md", content="new", if_none_match="*"),
            PutFile(path="image.png", content=b"\xff\x00", content_type="image/png"),
            DeleteFile(path="gone.md", if_match=gone.etag),
            MoveFile(path="old.md", to="moved.md", if_match=old.etag),
        ],
        reason="tidy up",
    )

    new, image, deleted, moved = result.changes
    assert (new.change, new.path, new.version, new.etag) == ("put", "new.md", 1, '"v1"')
    assert image.size == 2
    assert (deleted.change, deleted.etag) == ("delete", None)
    assert (moved.moved_from, moved.file_id) == ("old.md", old.file_id)
    paths = [row.path for row in await workspace.list()]
    assert paths == ["image.png", "moved.md", "new.md"]
    [version, before] = await workspace.history("moved.md")
    assert (version.reason, version.source.path, version.source.kind) == (
        *("tidy up", "old.md"),
        "move",
    )
    assert (before.path, before.version, before.file_id) == ("old.md", 1, old.file_id)


async def test_a_refused_commit_names_every_change_that_failed(api: Any) -> None:
    workspace = api.workspace()
    await workspace.put("a.md", "a")
    with pytest.raises(carrel.WorkspaceConflict) as refusal:
        await workspace.commit(
            [
                PutFile(path="a.md", content="b", if_none_match="*"),
                PutFile(path="b.md", content="b"),
                DeleteFile(path="a2.md", if_match='"v1"'),
                CopyFile(path="a3.md", to="c.md", if_match="*"),
            ]
        )
    failed = refusal.value.failed_changes
    assert [(change["path"], change["currentVersion"]) for change in failed] == [
        ("a.md", 1),
        ("a2.md", 0),
        ("a3.md", 0),
    ]
    assert [row.path for row in await workspace.list()] == ["a.md"]


async def test_a_commit_with_the_same_idempotency_key_is_done_once(api: Any) -> None:
    workspace = api.workspace()
    change = PutFile(path="a.md", content="a", if_none_match="*")
    first = await workspace.commit([change], idempotency_key="k")
    assert await workspace.commit([change], idempotency_key="k") == first


async def test_directories_are_made_listed_moved_copied_and_removed(api: Any) -> None:
    workspace = api.workspace()
    await workspace.make_directory("docs/empty")
    await workspace.put("docs/a.md", "12345")
    entries = await workspace.list_directory("docs")
    assert [(entry.path, entry.is_directory, entry.size) for entry in entries] == [
        ("docs/a.md", False, 5),
        ("docs/empty", True, 0),
    ]
    await workspace.move("docs", "texts")
    await workspace.copy("texts", "more")
    assert [entry.path for entry in await workspace.list_directory()] == ["more", "texts"]
    with pytest.raises(carrel.Conflict):
        await workspace.remove_directory("texts")
    removed = await workspace.remove_directory("texts", recursive=True)
    assert len(removed.changes) == 2
    await workspace.remove_directory("more/empty")
    assert [row.path for row in await workspace.list()] == ["more/a.md"]
    with pytest.raises(carrel.NotFound):
        await workspace.move("absent", "elsewhere")
