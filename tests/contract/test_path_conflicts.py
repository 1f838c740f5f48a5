"""Path conflicts: no path may be both a file and a directory."""

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
from carrel.core.store.commit import (
    Applied,
    Expect,
    ExpectationFailed,
    ExpectPathFree,
    Outcome,
    PathOccupied,
    Quota,
    QuotaExceeded,
)
from carrel.core.store.record import CollectionRevision, RecordType

pytestmark = pytest.mark.anyio

STACK = (AGENT, TEMPLATE, DEFAULTS)


async def put(ports: Ports, path: str) -> Outcome:
    new_path = Path(path)
    return await try_write(
        ports, "x", path=new_path, path_checks=(ExpectPathFree(new_path, STACK),)
    )


def occupied(path: str, existing: str) -> PathOccupied:
    return PathOccupied(ExpectPathFree(Path(path), STACK), Path(existing))


@pytest.mark.parametrize("scope", STACK)
@pytest.mark.parametrize(
    ("existing", "requested"),
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
    ports: Ports, scope: object, existing: str, requested: str
) -> None:
    target = STACK[STACK.index(scope)]
    await put_text(ports, "first", target, Path(existing))

    assert await put(ports, requested) == occupied(requested, existing)

    assert Path(requested).text not in await read_texts(ports, AGENT)
    await put_text(ports, None, target, Path(existing))
    assert isinstance(await put(ports, requested), Applied)


async def test_names_with_a_common_prefix_do_not_conflict(ports: Ports) -> None:
    for path in ("a.md", "a-b", "ab", "a0", "b/a", "b/ac/d"):
        await put_text(ports, "x", TEMPLATE, Path(path))
    for path in ("a", "b/ab", "b/a.md"):
        assert isinstance(await put(ports, path), Applied)


async def test_an_existing_file_can_change_despite_a_conflict_below(ports: Ports) -> None:
    await put_text(ports, "x", path=Path("a"))
    await put_text(ports, "x", TEMPLATE, Path("a/b"))
    await put_text(ports, "x", DEFAULTS, Path("a/b"))

    assert isinstance(await put(ports, "a"), Applied)
    await put_text(ports, None, path=Path("a"))
    assert await put(ports, "a") == occupied("a", "a/b")


async def test_later_commits_of_a_call_see_paths_taken_and_freed_by_earlier_ones(
    ports: Ports,
) -> None:
    await put_text(ports, "x", path=Path("c/d"))
    paths = ("a/b/c", "a", "a/b", "a/b/c/d", "a/e", "c")
    commits = [
        commit(await write(ports, "x", path=Path(p)), path_checks=(ExpectPathFree(Path(p), STACK),))
        for p in paths
    ]
    deletion = commit(await write(ports, None, path=Path("c/d")))

    outcomes = await ports.trees.commit([*commits, deletion, commits[-1]])

    assert outcomes[1:4] == (
        occupied("a", "a/b/c"),
        occupied("a/b", "a/b/c"),
        occupied("a/b/c/d", "a/b/c"),
    )
    assert outcomes[5] == occupied("c", "c/d")
    assert [type(outcomes[n]) for n in (0, 4, 6, 7)] == [Applied] * 4
    assert set(await read_texts(ports, AGENT)) == {"a/b/c", "a/e", "c"}


async def test_a_path_conflict_is_reported_after_failed_expectations_and_before_quotas(
    ports: Ports,
) -> None:
    await put_text(ports, "x", path=Path("a"))
    path = Path("a/b")
    path_check = ExpectPathFree(path, STACK)
    stale, quota = CollectionRevision(AGENT.tenant, RecordType.AGENT, 9), Quota(AGENT, 1)
    expectation = Expect(AGENT, path, version=3)

    async def refusal(**fields: Any) -> Outcome:
        return await try_write(ports, "x", path=path, quotas=(quota,), **fields)

    assert isinstance(await refusal(), QuotaExceeded)
    assert await refusal(path_checks=(path_check,)) == PathOccupied(path_check, Path("a"))
    assert await refusal(
        path_checks=(path_check,), collection_revisions=(stale,)
    ) == ExpectationFailed(stale)
    assert isinstance(
        await refusal(path_checks=(path_check,), expects=(expectation,)), ExpectationFailed
    )


async def test_of_concurrent_writes_of_a_name_as_file_and_directory_one_wins(ports: Ports) -> None:
    for n in range(5):
        names = (f"{n}", f"{n}/b", f"{n}/b/c")
        outcomes = await asyncio.gather(*(put(ports, name) for name in names))
        assert [type(outcome) for outcome in outcomes].count(Applied) == 1
