"""On a disk a name is a file or a directory: a new path must find room among those there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.commits import (
    AGENT,
    DEFAULTS,
    TEMPLATE,
    commit,
    put_text,
    read_texts,
    try_write,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.store.record import CollectionRevision, RecordType
from carrel.core.store.tree import (
    Applied,
    Expect,
    ExpectationFailed,
    Outcome,
    PathFree,
    PathOccupied,
    Quota,
    QuotaExceeded,
)

pytestmark = pytest.mark.anyio

STACK = (AGENT, TEMPLATE, DEFAULTS)


async def put(ports: Ports, path: str) -> Outcome:
    wanted = Path(path)
    return await try_write(ports, "x", path=wanted, path_checks=(PathFree(wanted, STACK),))


def blocked(path: str, author: str) -> PathOccupied:
    return PathOccupied(PathFree(Path(path), STACK), Path(author))


@pytest.mark.parametrize("scope", STACK)
@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("a", "a/b"),
        ("a", "a/b/c/d"),
        ("a/b", "a/b/c"),
        ("a/b", "a"),
        ("a/b/c/d", "a/b"),
        ("é/b", "é"),
    ],
)
async def test_no_file_becomes_a_directory_nor_the_reverse(
    ports: Ports, scope: object, there: str, wanted: str
) -> None:
    place = STACK[STACK.index(scope)]
    await put_text(ports, "first", place, Path(there))

    assert await put(ports, wanted) == blocked(wanted, there)

    assert Path(wanted).text not in await read_texts(ports, AGENT)
    await put_text(ports, None, place, Path(there))
    assert isinstance(await put(ports, wanted), Applied)


async def test_names_that_only_begin_alike_are_no_directory(ports: Ports) -> None:
    for path in ("a.md", "a-b", "ab", "a0", "b/a", "b/ac/d"):
        await put_text(ports, "x", TEMPLATE, Path(path))
    for path in ("a", "b/ab", "b/a.md"):
        assert isinstance(await put(ports, path), Applied)


async def test_what_lives_already_can_change_whatever_else_has_come(ports: Ports) -> None:
    await put_text(ports, "x", path=Path("a"))
    await put_text(ports, "x", TEMPLATE, Path("a/b"))
    await put_text(ports, "x", DEFAULTS, Path("a/b"))

    assert isinstance(await put(ports, "a"), Applied)
    await put_text(ports, None, path=Path("a"))
    assert await put(ports, "a") == blocked("a", "a/b")


async def test_later_commits_of_one_call_find_what_earlier_ones_took_and_left(ports: Ports) -> None:
    await put_text(ports, "x", path=Path("c/d"))
    paths = ("a/b/c", "a", "a/b", "a/b/c/d", "a/e", "c")
    tried = [
        commit(await write(ports, "x", path=Path(p)), path_checks=(PathFree(Path(p), STACK),))
        for p in paths
    ]
    gone = commit(await write(ports, None, path=Path("c/d")))

    outcomes = await ports.trees.commit([*tried, gone, tried[-1]])

    assert outcomes[1:4] == (
        blocked("a", "a/b/c"),
        blocked("a/b", "a/b/c"),
        blocked("a/b/c/d", "a/b/c"),
    )
    assert outcomes[5] == blocked("c", "c/d")
    assert [type(outcomes[n]) for n in (0, 4, 6, 7)] == [Applied] * 4
    assert set(await read_texts(ports, AGENT)) == {"a/b/c", "a/e", "c"}


async def test_it_is_told_after_what_was_expected_and_before_what_is_too_much(ports: Ports) -> None:
    await put_text(ports, "x", path=Path("a"))
    wanted = Path("a/b")
    room = PathFree(wanted, STACK)
    moved, full = CollectionRevision(AGENT.tenant, RecordType.AGENT, 9), Quota(AGENT, 1)
    seen = Expect(AGENT, wanted, version=3)

    async def refused(**more: Any) -> Outcome:
        return await try_write(ports, "x", path=wanted, quotas=(full,), **more)

    assert isinstance(await refused(), QuotaExceeded)
    assert await refused(path_checks=(room,)) == PathOccupied(room, Path("a"))
    assert await refused(path_checks=(room,), collection_revisions=(moved,)) == ExpectationFailed(
        moved
    )
    assert isinstance(await refused(path_checks=(room,), expects=(seen,)), ExpectationFailed)


async def test_of_rivals_for_a_name_as_a_file_and_as_a_directory_one_wins(ports: Ports) -> None:
    for n in range(5):
        names = (f"{n}", f"{n}/b", f"{n}/b/c")
        outcomes = await asyncio.gather(*(put(ports, name) for name in names))
        assert [type(outcome) for outcome in outcomes].count(Applied) == 1
