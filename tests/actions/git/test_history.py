"""An agent's history in git: what is in it, and that it is the same however it came to be made."""

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
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import secrets
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.git import history as git_history
from carrel.actions.runs import runs
from carrel.core.access import Actor, CredentialKind, Permission
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def test_every_commit_of_the_store_is_one_of_gits(anywhere: Ports) -> None:
    studio = await GitAgent.of(anywhere)
    await studio.put(SOUL, "calm", reason="be calm\n\nIt was asked for.")
    run = await runs.start(anywhere, studio.owner, runs.RunRequest("noop", agent="marco"))
    await studio.put("notes/one.md", "1", run=run.id)
    await studio.write({"SOUL.md": "calmer", "MEMORY.md": "new", "notes/one.md": None})
    await studio.put("empty.md", "")

    projected = await studio.refresh()

    found = history(studio.repository_path)
    assert [commit.message.decode().partition("\n")[0] for commit in found] == [
        "be calm",
        "put notes/one.md",
        "any",
        "put empty.md",
    ]
    assert found[0].author.decode().startswith(f"{studio.owner.name} <")
    assert found[2].author == b"per_1 <per_1@carrel.invalid>"
    assert f"\nCarrel-Run: {run.id}\nCarrel-Revision: 2\n" in found[1].message.decode()
    assert [read_texts(studio.repository_path, commit) for commit in found] == [
        {"SOUL.md": b"calm"},
        {"SOUL.md": b"calm", "notes/one.md": b"1"},
        {"SOUL.md": b"calmer", "MEMORY.md": b"new"},
        {"SOUL.md": b"calmer", "MEMORY.md": b"new", "empty.md": b""},
    ]
    assert (projected.commits_added, projected.revision) == (4, 4)
    assert projected.tip == found[-1].id.decode()
    assert_sound(studio.repository_path)


async def test_what_an_agent_inherits_is_not_in_its_history(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    assert (await studio.refresh()).tip is None
    await studio.put(MEMORY, "mine")
    await studio.refresh()
    assert [
        read_texts(studio.repository_path, commit) for commit in history(studio.repository_path)
    ] == [{"MEMORY.md": b"mine"}]


async def test_bytes_that_are_no_text_and_large_ones_come_as_they_are(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    binary, large = bytes(range(256)) * 3, b"0123456789abcdef" * 60_000
    await studio.put("a.bin", binary)
    await studio.put("b.bin", large)
    await studio.refresh()
    assert read_texts(studio.repository_path, history(studio.repository_path)[-1]) == {
        "a.bin": binary,
        "b.bin": large,
    }
    assert_sound(studio.repository_path)


async def test_it_goes_on_from_where_it_ended(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.put(SOUL, "one")
    assert (await studio.refresh()).commits_added == 1
    assert (await studio.refresh()).commits_added == 0
    await studio.put(MEMORY, "two")
    await studio.delete(SOUL)
    again = await studio.refresh()
    assert (again.commits_added, again.rebuilt) == (2, False)
    assert (await studio.refresh(rebuild=True)).tip == again.tip
    assert read_texts(studio.repository_path, history(studio.repository_path)[-1]) == {
        "MEMORY.md": b"two"
    }


async def test_more_versions_than_are_kept_elsewhere_are_all_in_it(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    for n in range(8):
        await studio.write({"SOUL.md": f"text {n}"}, keep=2)
    assert (await studio.refresh()).commits_added == 8
    assert not history(studio.repository_path)[0].parents


async def test_what_was_pruned_before_git_was_enabled_is_told_to_be_missing(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.enable(False)
    await studio.write({"notes/old.md": "kept"})
    for n in range(6):
        await studio.write({"SOUL.md": f"text {n}"}, keep=2)
    await studio.enable(True)
    first = await studio.refresh()
    assert first.commits_added == 2
    found = history(studio.repository_path)
    assert b"pruned" in found[0].message
    assert b"pruned" not in found[1].message
    assert read_texts(studio.repository_path, found[0]) == {
        "notes/old.md": b"kept",
        "SOUL.md": b"text 4",
    }
    await studio.write({"SOUL.md": "text 6"}, keep=2)
    assert (await studio.refresh()).rebuilt is False
    tip = (await studio.refresh()).tip
    assert (await studio.refresh(rebuild=True)).tip == tip
    assert_sound(studio.repository_path)


async def test_what_was_pruned_while_git_was_off_is_never_served(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    for n in range(4):
        await studio.write({"SOUL.md": f"text {n}"})
    await studio.write({"MEMORY.md": "the newest, and untouched"})
    await studio.refresh()
    await studio.enable(False)
    await studio.write({"SOUL.md": "text 4"}, keep=3)
    await studio.enable(True)
    again = await studio.refresh()
    assert again.rebuilt
    assert (await studio.refresh(rebuild=True)).tip == again.tip
    assert_sound(studio.repository_path)


async def test_a_file_that_a_folder_hid_is_there_again_without_it(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.write({"a": "a file", "a/b": "in a folder of that name"})
    await studio.refresh()
    await studio.write({"a/b": None})
    grown = await studio.refresh()
    assert not grown.rebuilt
    assert [
        read_texts(studio.repository_path, commit) for commit in history(studio.repository_path)
    ] == [
        {"a/b": b"in a folder of that name"},
        {"a": b"a file"},
    ]
    assert (await studio.refresh(rebuild=True)).tip == grown.tip


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
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_however_it_came_about_making_it_again_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    async def story() -> None:
        async with open_ports(tmp_path_factory.mktemp("any")) as ports:
            studio = await GitAgent.of(ports)
            for what, about in steps:
                await _step(studio, what, about)
            await studio.enable(True)
            kept = await studio.refresh()
            before = refs(studio.repository_path)
            built = await studio.refresh(rebuild=True)
            assert built.tip == kept.tip
            assert refs(studio.repository_path) == before
            await _agrees(studio)

    asyncio.run(story())


async def _step(studio: GitAgent, what: str, about: Any) -> None:
    on = await _is_on(studio)
    if what == "write":
        await studio.write(about, keep=2)
    elif what == "refresh" and on:
        await studio.refresh()
    elif what == "mark" and on:
        await git_history.checkpoint(studio.ports, studio.owner, "marco", "here")
    elif what in {"on", "off"}:
        await studio.enable(what == "on")
    elif what == "later":
        advance_clock(studio.ports, 1000)


async def _is_on(studio: GitAgent) -> bool:
    agent = await agents.get(studio.ports, studio.owner, "marco")
    return bool(agent.body["config"]["workspaceGit"]["enabled"])


async def _agrees(studio: GitAgent) -> None:
    """The newest commit has the files that the store has, as far as git can hold them."""
    [tree] = await studio.ports.trees.read([studio.scope])
    live = {path.text: head.entry for path, head in tree.heads.items() if head.entry}
    contents = await studio.ports.blobs.get([entry.blob for entry in live.values()])
    meant = {
        path: contents[entry.blob.digest]
        for path, entry in live.items()
        if ".git" not in path and not any(other.startswith(f"{path}/") for other in live)
    }
    found = history(studio.repository_path)
    assert (read_texts(studio.repository_path, found[-1]) if found else {}) == meant


async def test_a_store_that_was_set_back_is_followed(ports: Ports, tmp_path: File) -> None:
    """As after restoring a backup over a machine that has gone on since."""
    studio = await GitAgent.of(ports)
    await studio.put(SOUL, "one")
    await studio.refresh()
    async with open_ports(tmp_path / "other") as other:
        shorter = await GitAgent.of(other)
        shutil.copytree(studio.repository_path, shorter.repository_path)
        found = await shorter.refresh()
        assert (found.rebuilt, found.tip) == (True, None)
        await shorter.put(SOUL, "another")
        shutil.rmtree(shorter.repository_path)
        shutil.copytree(studio.repository_path, shorter.repository_path)
        await shorter.refresh()
        [commit] = history(shorter.repository_path)
        assert read_texts(shorter.repository_path, commit) == {"SOUL.md": b"another"}


async def test_a_secret_is_in_no_object_of_whatever_age(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.put(SOUL, "the password is swordfish-9", reason="swordfish-9 it is")
    await studio.put("notes/swordfish-9.md", "a path")
    await git_history.checkpoint(ports, studio.owner, "marco", "swordfish-9")
    await studio.put(SOUL, "nothing")
    before = await studio.refresh()
    assert b"swordfish-9" in all_bytes(studio.repository_path)

    await secrets.put(ports, studio.owner, "fish", "swordfish-9")
    await studio.put(MEMORY, "again swordfish-9")
    after = await studio.refresh()

    assert after.rebuilt
    assert b"swordfish-9" not in all_bytes(studio.repository_path)
    found = history(studio.repository_path)
    assert read_texts(studio.repository_path, found[0]) == {
        "SOUL.md": b"the password is [REDACTED:fish]"
    }
    assert found[0].message.startswith(b"[REDACTED:fish] it is\n")
    assert b"[REDACTED:fish]" in read_texts(studio.repository_path, found[-1])["MEMORY.md"]
    assert before.tip not in {commit.id.decode() for commit in found}
    assert (await studio.refresh(rebuild=True)).tip == after.tip
    assert_sound(studio.repository_path)


async def test_a_secret_that_stands_nowhere_changes_no_id(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.put(SOUL, "plain")
    before = await studio.refresh()
    await secrets.put(ports, studio.owner, "fish", "swordfish-9")
    assert (await studio.refresh()).tip == before.tip


async def test_a_checkpoint_is_a_tag_with_its_note(anywhere: Ports) -> None:
    studio = await GitAgent.of(anywhere)
    nothing = await git_history.checkpoint(anywhere, studio.owner, "marco", "early")
    assert (nothing.skipped, nothing.oid) == (True, "")
    await studio.put(SOUL, "one")
    made = await git_history.checkpoint(anywhere, studio.owner, "marco", "  before\nthe move ")
    assert (made.skipped, made.subject) == (False, "checkpoint: before the move")
    again = await git_history.checkpoint(anywhere, studio.owner, "marco", "another")
    assert (again.skipped, again.subject, again.oid) == (True, made.subject, made.oid)
    assert again.reason
    await studio.put(SOUL, "two")
    other = await git_history.checkpoint(anywhere, studio.owner, "marco")
    assert (other.subject, other.skipped) == ("checkpoint: manual", False)
    found = [commit.id.decode() for commit in history(studio.repository_path)]
    assert [made.oid, other.oid] == found
    before = refs(studio.repository_path)
    assert {b"refs/tags/checkpoint/1", b"refs/tags/checkpoint/2"} < before.keys()
    await studio.refresh(rebuild=True)
    assert refs(studio.repository_path) == before
    assert_sound(studio.repository_path)


@pytest.mark.parametrize("note", ["", " \n", "x" * 501])
async def test_a_note_is_a_line(ports: Ports, note: str) -> None:
    studio = await GitAgent.of(ports)
    await studio.put(SOUL, "one")
    with pytest.raises(ValidationError):
        await git_history.checkpoint(ports, studio.owner, "marco", note)


async def test_a_history_is_newest_first_with_what_it_changed(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    assert await git_history.load_history(
        ports, studio.owner, "marco", include_diff=True
    ) == git_history.GitHistory((), None)
    for n in range(1, 4):
        await studio.put(SOUL, f"line {n}\n", reason=f"turn {n}\n\nbecause")
    await git_history.checkpoint(ports, studio.owner, "marco", "done")

    told = await git_history.load_history(ports, studio.owner, "marco", limit=2, include_diff=True)
    assert [line.commit.subject for line in told.commits] == ["turn 3", "turn 2"]
    assert told.commits[0].commit.body.startswith("because")
    assert [line.checkpoint and line.checkpoint.note for line in told.commits] == ["done", None]
    assert told.diff == "--- a/SOUL.md\n+++ b/SOUL.md\n@@ -1 +1 @@\n-line 1\n+line 3\n"

    whole = await git_history.load_history(
        ports, studio.owner, "marco", limit=1000, include_diff=True
    )
    assert len(whole.commits) == 3
    assert whole.diff == "--- /dev/null\n+++ b/SOUL.md\n@@ -0,0 +1 @@\n+line 3\n"
    assert (await git_history.load_history(ports, studio.owner, "marco", limit=-5)).diff is None
    assert (
        len((await git_history.load_history(ports, studio.owner, "marco", limit=-5)).commits) == 1
    )


async def test_a_long_diff_is_cut(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.put("long.md", "a line of no interest\n" * 10_000)
    told = await git_history.load_history(ports, studio.owner, "marco", include_diff=True)
    assert told.diff is not None
    assert told.diff.endswith("\n[truncated]\n")
    assert len(told.diff) < git_history.MAX_DIFF_CHARS + 100


async def test_only_who_may_see_the_agent_and_only_where_git_is_enabled(ports: Ports) -> None:
    studio = await GitAgent.of(ports)
    await studio.put(SOUL, "one")
    _, stranger = await create_tenant(ports, "globex")
    with pytest.raises(NotFound):
        await git_history.refresh(ports, stranger, studio.scope.name)
    other = await agents.create(ports, studio.owner, NewAgent("other", "Other"))
    for name in ("other", other.id, "nobody"):
        with pytest.raises(NotFound):
            await git_history.load_history(ports, studio.owner, name)
    _, member = await add_person(ports, studio.owner, "bob")
    assert (await git_history.load_history(ports, member, "marco")).commits
    bound = Actor(studio.owner.tenant, "key_1", kind=CredentialKind.AGENT, agent=other.id)
    with pytest.raises(NotFound):
        await git_history.load_history(ports, bound, "marco")
    reader = Actor(studio.owner.tenant, "key_2", frozenset({Permission.WORKSPACE_READ}))
    with pytest.raises(Forbidden):
        await git_history.checkpoint(ports, reader, "marco", "x")
    with pytest.raises(Forbidden):
        await git_history.load_history(
            ports, Actor(studio.owner.tenant, "key_3", frozenset()), "marco"
        )
    await studio.enable(False)
    with pytest.raises(NotFound):
        await git_history.advertise_refs(ports, studio.owner, "marco")


async def test_many_at_once_make_each_commit_once(ports: Ports) -> None:
    studio = await GitAgent.of(ports)

    async def writer(number: int) -> None:
        for n in range(5):
            await studio.put(f"notes/{number}.md", f"{n}")
            await studio.refresh()

    await asyncio.gather(*map(writer, range(6)))
    assert len(history(studio.repository_path)) == 30
    tip = (await studio.refresh()).tip
    assert (await studio.refresh(rebuild=True)).tip == tip
    assert_sound(studio.repository_path)
