"""File ids: a file keeps its id at another path; a new file at an old path gets its own."""

from __future__ import annotations

import pytest
from tests.support.commits import AGENT, assert_applied, commit, entry, put_text, write
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.store.commit import Applied, ExpectPathFree, PathOccupied, Write
from carrel.core.store.entry import Head, TransferKind, VersionSource, new_file_id

pytestmark = pytest.mark.anyio

OLD, NEW = Path("notes/old.md"), Path("notes/new.md")


async def move(ports: Ports, source: Path, target: Path) -> Head:
    [tree] = await ports.trees.read([AGENT], [source])
    head = tree.heads[source]
    origin = VersionSource(TransferKind.MOVE, head.version, source.text)
    file_id = head.file_id(AGENT)
    moved = Write(AGENT, target, head.entry, file_id=file_id, source=origin)
    [outcome] = await ports.trees.commit([commit(moved, Write(AGENT, source, None))])
    return assert_applied(outcome).heads[0]


async def read_head(ports: Ports, path: Path) -> Head:
    [named] = await ports.trees.read([AGENT], [path])
    [listed] = await ports.trees.read([AGENT])
    assert listed.heads[path] == named.heads[path]
    return named.heads[path]


async def test_a_file_keeps_its_id_with_every_write_and_move(ports: Ports) -> None:
    first = new_file_id(AGENT, OLD, 1)
    assert (await put_text(ports, "a", path=OLD)).file_id(AGENT) == first
    assert (await put_text(ports, "b", path=OLD)).file_id(AGENT) == first
    assert (await move(ports, OLD, NEW)).file_id(AGENT) == first
    assert (await put_text(ports, "c", path=NEW)).file_id(AGENT) == first
    assert (await move(ports, NEW, OLD)).file_id(AGENT) == first
    assert (await read_head(ports, OLD)).file_id(AGENT) == first


async def test_a_file_that_begins_again_has_another_id(ports: Ports) -> None:
    await put_text(ports, "a", path=OLD)
    await put_text(ports, None, path=OLD)
    again = await put_text(ports, "b", path=OLD)
    assert again.file_id(AGENT) == new_file_id(AGENT, OLD, 3)
    assert await read_head(ports, OLD) == again
    await put_text(ports, "c", path=OLD)
    assert (await read_head(ports, OLD)).file_id(AGENT) == again.file_id(AGENT)


async def test_a_version_tells_what_was_moved_there(ports: Ports) -> None:
    await put_text(ports, "a", path=OLD)
    await put_text(ports, "b", path=OLD)
    await move(ports, OLD, NEW)
    await put_text(ports, "c", path=NEW)

    newest, moved = await ports.trees.history(AGENT, NEW)
    [logged] = [row for row in await ports.trees.log(AGENT) if row.head == moved.head]
    [by_number] = await ports.trees.versions([(AGENT, NEW, 1)])
    assert newest.source is None
    assert moved.source == VersionSource(TransferKind.MOVE, 2, OLD.text)
    assert moved == logged == by_number


async def test_an_erased_path_is_named_by_no_version(ports: Ports) -> None:
    await put_text(ports, "a", path=OLD)
    await move(ports, OLD, NEW)
    await ports.erasure.erase_paths([(AGENT, OLD)])
    [moved] = await ports.trees.history(AGENT, NEW)
    assert moved.source is None


@pytest.mark.parametrize(("before", "after"), [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b")])
async def test_what_a_commit_deletes_is_free_for_its_writes(
    ports: Ports, before: str, after: str
) -> None:
    await put_text(ports, "x", path=Path(before))
    check = ExpectPathFree(Path(after), (AGENT,))
    put = await write(ports, "y", path=Path(after))

    [refused] = await ports.trees.commit([commit(put, path_checks=(check,))])
    [applied] = await ports.trees.commit(
        [commit(Write(AGENT, Path(before), None), put, path_checks=(check,))]
    )

    assert refused == PathOccupied(check, Path(before))
    assert isinstance(applied, Applied)


async def test_only_its_own_deletions_are_free_for_a_commit(ports: Ports) -> None:
    await put_text(ports, "x", path=Path("a/one"))
    await put_text(ports, "x", path=Path("a/two"))
    check = ExpectPathFree(Path("a"), (AGENT,))
    put = Write(AGENT, Path("a"), await entry(ports, "y"))

    outcomes = await ports.trees.commit(
        [
            commit(Write(AGENT, Path("a/one"), None), put, path_checks=(check,)),
            commit(put, path_checks=(check,)),
            commit(Write(AGENT, Path("a/one"), None)),
            commit(put, path_checks=(check,)),
        ]
    )

    assert outcomes[0] == PathOccupied(check, Path("a/two"))
    assert outcomes[1] == PathOccupied(check, Path("a/one"))
    assert outcomes[3] == PathOccupied(check, Path("a/two"))
