"""Files and runs by the client, over every driver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import carrel
from carrel_client import CopyFile, DeleteFile, MoveFile, PutFile

pytestmark = pytest.mark.anyio


async def test_file_is_written_read_listed_and_deleted(api: Any) -> None:
    workspace = api.workspace("notes")
    stored = await workspace.put("a/ü.md", "one", if_none_match="*", reason="begin")
    assert (stored.path, stored.version, stored.content) == ("a/ü.md", 1, "one")
    assert await workspace.get("a/ü.md") == stored
    assert [row.path for row in await workspace.list("a/")] == ["a/ü.md"]
    [listed] = await workspace.list(content=True)
    assert listed.content == "one"
    assert await workspace.read() == {"a/ü.md": "one"}
    await workspace.delete("a/ü.md", if_match=stored.etag)
    with pytest.raises(carrel.NotFound):
        await workspace.get("a/ü.md")
    assert (await workspace.get("a/ü.md", version=1)).content == "one"


async def test_one_of_many_concurrent_writers_of_a_version_wins(api: Any) -> None:
    workspace = api.workspace()
    first = await workspace.put("a.md", "0")

    async def write(text: str) -> bool:
        try:
            await workspace.put("a.md", text, if_match=first.etag)
        except carrel.WorkspaceConflict as refusal:
            assert refusal.current_version == 2
            return False
        return True

    assert sum(await asyncio.gather(*(write(str(number)) for number in range(16)))) == 1


async def test_conditions_that_do_not_hold_are_refused(api: Any) -> None:
    workspace = api.workspace()
    with pytest.raises(carrel.WorkspaceConflict):
        await workspace.put("a.md", "1", if_match="*")
    await workspace.put("a.md", "1", if_none_match="*")
    with pytest.raises(carrel.WorkspaceConflict):
        await workspace.put("a.md", "2", if_none_match="*")
    with pytest.raises(carrel.WorkspaceConflict):
        await workspace.delete("a.md", if_match='"v9"')
    await workspace.delete("a.md", if_match='"v1"', reason="no longer needed")
    newest, _ = await workspace.history("a.md")
    assert (newest.version, newest.deleted, newest.reason) == (2, True, "no longer needed")


async def test_write_with_the_same_idempotency_key_is_done_once(api: Any) -> None:
    workspace = api.workspace()
    first = await workspace.put("a.md", "x", idempotency_key="k1")
    assert await workspace.put("a.md", "x", idempotency_key="k1") == first
    with pytest.raises(carrel.IdempotencyKeyMismatch):
        await workspace.put("a.md", "y", idempotency_key="k1")
    assert (await workspace.put("a.md", "x")).version == 2


async def test_history_diff_restore_and_explain(api: Any) -> None:
    workspace = api.workspace()
    await workspace.put("a.md", "one\n")
    await workspace.put("a.md", "two\n", reason="better")
    assert "-one" in await workspace.diff("a.md")
    assert "+two" in await workspace.diff("a.md", 1, 2)
    assert (await workspace.restore("a.md", 1)).content == "one\n"
    versions = await workspace.history("a.md", limit=2)
    assert [version.version for version in versions] == [3, 2]
    [oldest] = await workspace.history("a.md", before=2)
    assert (oldest.version, oldest.deleted, oldest.size) == (1, False, 4)
    explanation = await workspace.explain("a.md")
    assert (explanation.source, explanation.layers[0].version) == ("workspace", 3)
    assert explanation.reason


async def test_invalid_content_paths_and_reasons_are_refused(api: Any) -> None:
    workspace = api.workspace()
    for content in (b"\xff\xfe", "\ud800"):
        with pytest.raises(carrel.ValidationError):
            await workspace.put("a.md", content)
    for path in ("../a.md", "", "a//b", "a\x00b"):
        with pytest.raises(carrel.ValidationError):
            await workspace.put(path, "x")
    with pytest.raises(carrel.ValidationError):
        await workspace.put("a.md", "x", reason="two\nlines")
    with pytest.raises(carrel.ValidationError):
        await api.workspace("no such name/").list()
    with pytest.raises(carrel.WorkspaceTooLarge) as refusal:
        await workspace.put("big.md", "x" * (2**20 + 1))
    assert refusal.value.details["maxBytes"] == 2**20


async def test_workspaces_of_a_tenant_are_separate(api: Any) -> None:
    await api.workspace("team").put("a.md", "team")
    assert await api.workspace().list() == ()
    run = await api.workspace("team").start_run("nightly")
    assert [row.path for row in await run.workspace.list()] == ["a.md"]
    assert [listed.id for listed in await api.workspace("team").runs()] == [run.id]
    assert [listed.id for listed in await api.runs(workspace_id="team")] == [run.id]
    assert await api.workspace().runs() == ()
    fetched = await api.run(run.id)
    assert (fetched.workflow_id, fetched.agent_id) == ("nightly", None)
    assert [other.id for other in await api.runs()] == [run.id]
    with pytest.raises(carrel.ValidationError):
        await api.start_run("nightly", workspace_id="team", agent_id="ada")


async def test_run_reads_what_was_there_when_it_began(api: Any) -> None:
    workspace = api.workspace()
    await workspace.put("AGENTS.md", "old")
    run = await workspace.start_run("nightly", scope="shared")
    await workspace.put("AGENTS.md", "new", run_id=run.id)
    await workspace.put("SOUL.md", "b")
    assert (await run.workspace.get("AGENTS.md")).content == "old"
    changes = [(item.path, item.kind, item.before, item.after) for item in await run.diff()]
    assert changes == [("AGENTS.md", "changed", 1, 2), ("SOUL.md", "added", None, 1)]
    assert "+new" in await run.diff_of("AGENTS.md")
    with pytest.raises(carrel.NotFound):
        await run.diff_of("nothing.md")
    newest, _ = await workspace.history("AGENTS.md")
    assert newest.run_id == run.id


async def test_child_runs_replays_and_release(api: Any) -> None:
    workspace = api.workspace()
    await workspace.put("AGENTS.md", "old")
    run = await workspace.start_run("nightly", scope="shared")
    await workspace.put("AGENTS.md", "new")
    child = await run.start_child(share_snapshot=True)
    assert child.parent_run_id == run.id
    assert (await child.refresh()).scope == "shared"
    assert (await child.workspace.get("AGENTS.md")).content == "old"
    fresh = await run.start_child("follow-up")
    assert (await fresh.workspace.get("AGENTS.md")).content == "new"
    with pytest.raises(carrel.Conflict):
        await run.release()
    await run.finish("failed")
    assert (run.status, run.ended_at is not None) == ("failed", True)
    twin = await run.replay()
    assert (twin.replay_of, (await twin.workspace.get("AGENTS.md")).content) == (run.id, "old")
    await run.release()
    with pytest.raises(carrel.NotFound):
        await run.workspace.get("AGENTS.md")
    assert (await (await api.run(run.id)).refresh()).holds_snapshot is False
    with pytest.raises(carrel.Conflict):
        await run.finish("completed")
    with pytest.raises(carrel.ValidationError):
        await twin.finish("finished")


async def test_search_finds_files_by_words(api: Any) -> None:
    await api.agents.create("ada")
    await api.agent("ada").put("tea.md", "Bob likes oolong")
    result = await api.search("oolong", kinds=["files"])
    assert [(hit.kind, hit.path) for hit in result.items] == [("file", "tea.md")]
    assert result.complete


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
