"""Directories of their own, and modes and times of files, in every store."""

from __future__ import annotations

import pytest
from tests.support.commits import (
    AGENT,
    DEFAULTS,
    NOW,
    TEMPLATE,
    assert_applied,
    commit,
    entry,
    put_text,
    read_texts,
    start_run,
    try_write,
    version_numbers,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import (
    Expect,
    ExpectationFailed,
    ExpectPathFree,
    PathOccupied,
    Quota,
    Write,
)
from carrel.core.store.entry import FileAttributes, Head

pytestmark = pytest.mark.anyio
SHARED = Scope("acme", ScopeKind.WORKSPACE, "ws_" + "a" * 24)
EMPTY = Path("a/empty")
ATTRIBUTES = FileAttributes(0o700, 1_700_000_000_123_456_789)


async def make_directory(ports: Ports, path: Path = EMPTY, scope: Scope = SHARED) -> Head:
    directory_commit = commit(Write(scope, path, None, directory=ATTRIBUTES))
    [outcome] = await ports.trees.commit([directory_commit])
    return assert_applied(outcome).heads[0]


async def directories(ports: Ports, layer: Scope | SnapshotLayer = SHARED) -> dict[str, object]:
    [tree] = await ports.trees.read([layer])
    return {path.text: head.directory for path, head in tree.directories.items()}


async def test_a_directory_is_listed_apart_from_files(ports: Ports) -> None:
    await put_text(ports, "x", SHARED, Path("f"))
    head = await make_directory(ports)
    assert (head.version, head.entry, head.directory) == (1, None, ATTRIBUTES)
    assert await read_texts(ports, SHARED) == {"f": "x"}
    assert await directories(ports) == {"a/empty": ATTRIBUTES}
    [tree] = await ports.trees.read([SHARED], [EMPTY])
    assert (tree.entry(EMPTY), tree.version(EMPTY)) == (None, 1)
    [tree] = await ports.trees.read([SHARED], prefix="b")
    assert not tree.directories


async def test_a_deleted_directory_stays_in_history_and_in_snapshots(ports: Ports) -> None:
    await make_directory(ports)
    [revision] = await ports.trees.revisions([SHARED])
    await start_run(ports, "run_1", SHARED)
    await put_text(ports, None, SHARED, EMPTY)
    assert await directories(ports) == {}
    assert await directories(ports, SnapshotLayer(SHARED, revision)) == {"a/empty": ATTRIBUTES}
    assert await version_numbers(ports, SHARED, EMPTY) == [2, 1]
    await put_text(ports, None, SHARED, EMPTY)
    assert await version_numbers(ports, SHARED, EMPTY) == [2, 1], "it was absent"


@pytest.mark.parametrize("scope", [AGENT, TEMPLATE, DEFAULTS])
async def test_no_file_takes_the_place_of_a_directory(ports: Ports, scope: Scope) -> None:
    stack = (AGENT, TEMPLATE, DEFAULTS)
    await make_directory(ports, scope=scope)
    for path in ("a/empty", "a"):
        check = ExpectPathFree(Path(path), stack)
        outcome = await try_write(ports, "x", path=Path(path), path_checks=(check,))
        assert outcome == PathOccupied(check, EMPTY)
    for path in ("a/empty/f", "a/emptyish"):
        check = ExpectPathFree(Path(path), stack)
        await put_text(ports, "x", path=Path(path), path_checks=(check,))


async def test_a_directory_may_be_replaced_by_a_file_in_the_next_commit(ports: Ports) -> None:
    await make_directory(ports)
    removal = commit(await write(ports, None, SHARED, EMPTY))
    check = ExpectPathFree(EMPTY, (SHARED,))
    added = commit(await write(ports, "x", SHARED, EMPTY), path_checks=(check,))
    for outcome in await ports.trees.commit([removal, added]):
        assert_applied(outcome)
    assert (await read_texts(ports, SHARED), await directories(ports)) == ({"a/empty": "x"}, {})


async def test_a_directory_is_no_file_for_conditions_and_quotas(ports: Ports) -> None:
    await make_directory(ports)
    quota = Quota(SHARED, 1, 10)
    await put_text(ports, "x", SHARED, Path("f"), quotas=(quota,))
    more = commit(Write(SHARED, Path("g"), None, directory=ATTRIBUTES), quotas=(quota,))
    [outcome] = await ports.trees.commit([more])
    assert_applied(outcome)
    is_file = Expect(SHARED, EMPTY, live=True)
    refused = await try_write(ports, None, SHARED, EMPTY, expects=(is_file,))
    assert isinstance(refused, ExpectationFailed)
    assert refused.current and refused.current.directory == ATTRIBUTES


async def test_mode_and_time_of_a_file_belong_to_its_version(ports: Ports) -> None:
    path = Path("f")
    first = await entry(ports, "x")
    second = type(first)(first.blob, None, first.type, ATTRIBUTES)
    for stored in (first, second):
        [outcome] = await ports.trees.commit([commit(Write(SHARED, path, stored), at=NOW)])
        assert_applied(outcome)
    [tree] = await ports.trees.read([SHARED])
    current = tree.entry(path)
    assert current and current.attributes == ATTRIBUTES
    newest, oldest = await ports.trees.history(SHARED, path)
    assert newest.head.entry and newest.head.entry.attributes == ATTRIBUTES
    assert oldest.head.entry and oldest.head.entry.attributes is None
