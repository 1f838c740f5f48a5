"""An agent's git history: commits, tags and diffs, the same for every rebuild."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.git_agent import (
    MEMORY,
    SOUL,
    GitAgent,
    all_bytes,
    assert_sound,
    history,
    read_texts,
    refs,
)
from tests.support.stores import advance_clock, open_ports

from carrel.actions.accounts import secrets
from carrel.actions.agents import agents
from carrel.actions.git import history as git_history
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.core.errors import ValidationError
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def test_every_store_commit_is_a_git_commit(anywhere: Ports) -> None:
    git_agent = await GitAgent.of(anywhere)
    await git_agent.put(SOUL, "calm", reason="be calm\n\nIt was asked for.")
    run = await runs.start(anywhere, git_agent.owner, RunRequest("noop", agent="marco"))
    await git_agent.put("notes/one.md", "1", run=run.id)
    await git_agent.write({"SOUL.md": "calmer", "MEMORY.md": "new", "notes/one.md": None})
    await git_agent.put("empty.md", "")

    projected = await git_agent.refresh()

    commits = history(git_agent.repository)
    assert [commit.message.decode().partition("\n")[0] for commit in commits] == [
        "be calm",
        "put notes/one.md",
        "any",
        "put empty.md",
    ]
    assert commits[0].author.decode().startswith(f"{git_agent.owner.name} <")
    assert commits[2].author == b"per_1 <per_1@carrel.invalid>"
    assert f"\nCarrel-Run: {run.id}\nCarrel-Revision: 2\n" in commits[1].message.decode()
    assert [read_texts(git_agent.repository, commit) for commit in commits] == [
        {"SOUL.md": b"calm"},
        {"SOUL.md": b"calm", "notes/one.md": b"1"},
        {"SOUL.md": b"calmer", "MEMORY.md": b"new"},
        {"SOUL.md": b"calmer", "MEMORY.md": b"new", "empty.md": b""},
    ]
    assert (projected.commits_added, projected.revision) == (4, 4)
    assert projected.tip == commits[-1].id.decode()
    assert_sound(git_agent.repository)


async def test_inherited_files_are_not_in_an_agents_history(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    assert (await git_agent.refresh()).tip is None
    await git_agent.put(MEMORY, "mine")
    await git_agent.refresh()
    assert [
        read_texts(git_agent.repository, commit) for commit in history(git_agent.repository)
    ] == [{"MEMORY.md": b"mine"}]


async def test_binary_and_large_files_are_committed_unchanged(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    binary, large = bytes(range(256)) * 3, b"0123456789abcdef" * 60_000
    await git_agent.put("a.bin", binary)
    await git_agent.put("b.bin", large)
    await git_agent.refresh()
    assert read_texts(git_agent.repository, history(git_agent.repository)[-1]) == {
        "a.bin": binary,
        "b.bin": large,
    }
    assert_sound(git_agent.repository)


async def test_a_refresh_continues_after_the_last_commit(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.put(SOUL, "one")
    assert (await git_agent.refresh()).commits_added == 1
    assert (await git_agent.refresh()).commits_added == 0
    await git_agent.put(MEMORY, "two")
    await git_agent.delete(SOUL)
    again = await git_agent.refresh()
    assert (again.commits_added, again.rebuilt) == (2, False)
    assert (await git_agent.refresh(rebuild=True)).tip == again.tip
    assert read_texts(git_agent.repository, history(git_agent.repository)[-1]) == {
        "MEMORY.md": b"two"
    }


async def test_the_history_has_versions_that_retention_would_prune(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    for n in range(8):
        await git_agent.write({"SOUL.md": f"text {n}"}, keep=2)
    assert (await git_agent.refresh()).commits_added == 8
    assert not history(git_agent.repository)[0].parents


async def test_versions_pruned_before_git_was_enabled_are_noted_as_missing(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.enable(False)
    await git_agent.write({"notes/old.md": "kept"})
    for n in range(6):
        await git_agent.write({"SOUL.md": f"text {n}"}, keep=2)
    await git_agent.enable(True)
    first = await git_agent.refresh()
    assert first.commits_added == 2
    commits = history(git_agent.repository)
    assert b"pruned" in commits[0].message
    assert b"pruned" not in commits[1].message
    assert read_texts(git_agent.repository, commits[0]) == {
        "notes/old.md": b"kept",
        "SOUL.md": b"text 4",
    }
    await git_agent.write({"SOUL.md": "text 6"}, keep=2)
    assert (await git_agent.refresh()).rebuilt is False
    tip = (await git_agent.refresh()).tip
    assert (await git_agent.refresh(rebuild=True)).tip == tip
    assert_sound(git_agent.repository)


async def test_versions_pruned_while_git_was_disabled_are_never_served(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    for n in range(4):
        await git_agent.write({"SOUL.md": f"text {n}"})
    await git_agent.write({"MEMORY.md": "the newest, and untouched"})
    await git_agent.refresh()
    await git_agent.enable(False)
    await git_agent.write({"SOUL.md": "text 4"}, keep=3)
    await git_agent.enable(True)
    again = await git_agent.refresh()
    assert again.rebuilt
    assert (await git_agent.refresh(rebuild=True)).tip == again.tip
    assert_sound(git_agent.repository)


async def test_a_file_hidden_by_a_folder_reappears_without_it(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.write({"a": "a file", "a/b": "in a folder of that name"})
    await git_agent.refresh()
    await git_agent.write({"a/b": None})
    grown = await git_agent.refresh()
    assert not grown.rebuilt
    assert [
        read_texts(git_agent.repository, commit) for commit in history(git_agent.repository)
    ] == [{"a/b": b"in a folder of that name"}, {"a": b"a file"}]
    assert (await git_agent.refresh(rebuild=True)).tip == grown.tip


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.dictionaries(
                st.sampled_from(["a", "a/b", "a/b/c", "d.md", "é", ".git/config", "x/.gitmodules"]),
                st.none() | st.sampled_from(["", "one", "two"]),
                min_size=1,
                max_size=3,
            ),
        ),
        st.tuples(st.sampled_from(["refresh", "mark", "off", "on", "later"]), st.none()),
    ),
    max_size=14,
)


@given(STEPS)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rebuilding_gives_the_same_history_after_any_steps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    async def run_steps() -> None:
        async with open_ports(tmp_path_factory.mktemp("any")) as ports:
            git_agent = await GitAgent.of(ports)
            for action, argument in steps:
                await _step(git_agent, action, argument)
            await git_agent.enable(True)
            current = await git_agent.refresh()
            before = refs(git_agent.repository)
            rebuilt = await git_agent.refresh(rebuild=True)
            assert rebuilt.tip == current.tip
            assert refs(git_agent.repository) == before
            await _check_newest_commit(git_agent)

    asyncio.run(run_steps())


async def _step(git_agent: GitAgent, action: str, argument: Any) -> None:
    enabled = await _is_enabled(git_agent)
    if action == "write":
        await git_agent.write(argument, keep=2)
    elif action == "refresh" and enabled:
        await git_agent.refresh()
    elif action == "mark" and enabled:
        await git_history.checkpoint(git_agent.ports, git_agent.owner, "marco", "here")
    elif action in {"on", "off"}:
        await git_agent.enable(action == "on")
    elif action == "later":
        advance_clock(git_agent.ports, 1000)


async def _is_enabled(git_agent: GitAgent) -> bool:
    agent = await agents.get(git_agent.ports, git_agent.owner, "marco")
    return bool(agent.body["config"]["workspaceGit"]["enabled"])


async def _check_newest_commit(git_agent: GitAgent) -> None:
    """The newest commit has the files of the store, as far as git can represent them."""
    [tree] = await git_agent.ports.trees.read([git_agent.scope])
    live = {path.text: head.entry for path, head in tree.heads.items() if head.entry}
    contents = await git_agent.ports.blobs.get([entry.blob for entry in live.values()])
    expected = {
        path: contents[entry.blob.digest]
        for path, entry in live.items()
        if ".git" not in path and not any(other.startswith(f"{path}/") for other in live)
    }
    commits = history(git_agent.repository)
    assert (read_texts(git_agent.repository, commits[-1]) if commits else {}) == expected


async def test_a_store_that_was_reset_gets_a_rebuilt_history(ports: Ports, tmp_path: File) -> None:
    """As after restoring an older backup."""
    git_agent = await GitAgent.of(ports)
    await git_agent.put(SOUL, "one")
    await git_agent.refresh()
    async with open_ports(tmp_path / "other") as other:
        shorter = await GitAgent.of(other)
        shutil.copytree(git_agent.repository, shorter.repository)
        refreshed = await shorter.refresh()
        assert (refreshed.rebuilt, refreshed.tip) == (True, None)
        await shorter.put(SOUL, "another")
        shutil.rmtree(shorter.repository)
        shutil.copytree(git_agent.repository, shorter.repository)
        await shorter.refresh()
        [commit] = history(shorter.repository)
        assert read_texts(shorter.repository, commit) == {"SOUL.md": b"another"}


async def test_a_secret_is_in_no_object_of_any_age(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.put(SOUL, "the password is swordfish-9", reason="swordfish-9 it is")
    await git_agent.put("notes/swordfish-9.md", "a path")
    await git_history.checkpoint(ports, git_agent.owner, "marco", "swordfish-9")
    await git_agent.put(SOUL, "nothing")
    before = await git_agent.refresh()
    assert b"swordfish-9" in all_bytes(git_agent.repository)

    await secrets.put(ports, git_agent.owner, "fish", "swordfish-9")
    await git_agent.put(MEMORY, "again swordfish-9")
    after = await git_agent.refresh()

    assert after.rebuilt
    assert b"swordfish-9" not in all_bytes(git_agent.repository)
    commits = history(git_agent.repository)
    assert read_texts(git_agent.repository, commits[0]) == {
        "SOUL.md": b"the password is [REDACTED:fish]"
    }
    assert commits[0].message.startswith(b"[REDACTED:fish] it is\n")
    assert b"[REDACTED:fish]" in read_texts(git_agent.repository, commits[-1])["MEMORY.md"]
    assert before.tip not in {commit.id.decode() for commit in commits}
    assert (await git_agent.refresh(rebuild=True)).tip == after.tip
    assert_sound(git_agent.repository)


async def test_a_secret_that_matches_nothing_changes_no_commit_id(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.put(SOUL, "plain")
    before = await git_agent.refresh()
    await secrets.put(ports, git_agent.owner, "fish", "swordfish-9")
    assert (await git_agent.refresh()).tip == before.tip


async def test_a_checkpoint_is_a_tag_with_its_note(anywhere: Ports) -> None:
    git_agent = await GitAgent.of(anywhere)
    skipped = await git_history.checkpoint(anywhere, git_agent.owner, "marco", "early")
    assert (skipped.skipped, skipped.oid) == (True, "")
    await git_agent.put(SOUL, "one")
    created = await git_history.checkpoint(
        anywhere, git_agent.owner, "marco", "  before\nthe move "
    )
    assert (created.skipped, created.subject) == (False, "checkpoint: before the move")
    again = await git_history.checkpoint(anywhere, git_agent.owner, "marco", "another")
    assert (again.skipped, again.subject, again.oid) == (True, created.subject, created.oid)
    assert again.reason
    await git_agent.put(SOUL, "two")
    other = await git_history.checkpoint(anywhere, git_agent.owner, "marco")
    assert (other.subject, other.skipped) == ("checkpoint: manual", False)
    commit_ids = [commit.id.decode() for commit in history(git_agent.repository)]
    assert [created.oid, other.oid] == commit_ids
    before = refs(git_agent.repository)
    assert {b"refs/tags/checkpoint/1", b"refs/tags/checkpoint/2"} < before.keys()
    await git_agent.refresh(rebuild=True)
    assert refs(git_agent.repository) == before
    assert_sound(git_agent.repository)


@pytest.mark.parametrize("note", ["", " \n", "x" * 501])
async def test_an_empty_or_long_note_is_refused(ports: Ports, note: str) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.put(SOUL, "one")
    with pytest.raises(ValidationError):
        await git_history.checkpoint(ports, git_agent.owner, "marco", note)


async def test_a_history_is_newest_first_with_its_diff(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    assert await git_history.load_history(
        ports, git_agent.owner, "marco", include_diff=True
    ) == git_history.GitHistory((), None)
    for n in range(1, 4):
        await git_agent.put(SOUL, f"line {n}\n", reason=f"turn {n}\n\nbecause")
    await git_history.checkpoint(ports, git_agent.owner, "marco", "done")

    recent = await git_history.load_history(
        ports, git_agent.owner, "marco", limit=2, include_diff=True
    )
    assert [line.commit.subject for line in recent.commits] == ["turn 3", "turn 2"]
    assert recent.commits[0].commit.body.startswith("because")
    assert [line.checkpoint and line.checkpoint.note for line in recent.commits] == ["done", None]
    assert recent.diff == "--- a/SOUL.md\n+++ b/SOUL.md\n@@ -1 +1 @@\n-line 1\n+line 3\n"

    complete = await git_history.load_history(
        ports, git_agent.owner, "marco", limit=1000, include_diff=True
    )
    assert len(complete.commits) == 3
    assert complete.diff == "--- /dev/null\n+++ b/SOUL.md\n@@ -0,0 +1 @@\n+line 3\n"
    assert (await git_history.load_history(ports, git_agent.owner, "marco", limit=-5)).diff is None
    assert (
        len((await git_history.load_history(ports, git_agent.owner, "marco", limit=-5)).commits)
        == 1
    )


async def test_a_long_diff_is_truncated(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)
    await git_agent.put("long.md", "a line of no interest\n" * 10_000)
    loaded = await git_history.load_history(ports, git_agent.owner, "marco", include_diff=True)
    assert loaded.diff is not None
    assert loaded.diff.endswith("\n[truncated]\n")
    assert len(loaded.diff) < git_history.MAX_DIFF_CHARS + 100


async def test_concurrent_refreshes_create_each_commit_once(ports: Ports) -> None:
    git_agent = await GitAgent.of(ports)

    async def writer(number: int) -> None:
        for n in range(5):
            await git_agent.put(f"notes/{number}.md", f"{n}")
            await git_agent.refresh()

    await asyncio.gather(*map(writer, range(6)))
    assert len(history(git_agent.repository)) == 30
    tip = (await git_agent.refresh()).tip
    assert (await git_agent.refresh(rebuild=True)).tip == tip
    assert_sound(git_agent.repository)
