"""Quotas: no file is added beyond the limit, and files over it can still change."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.commits import (
    AGENT,
    RULES,
    SOUL,
    TEMPLATE,
    commit,
    put_text,
    read_texts,
    try_write,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.store.commit import Applied, Quota, QuotaExceeded

pytestmark = pytest.mark.anyio


async def test_a_file_beyond_the_limit_is_refused_with_the_resulting_totals(
    ports: Ports,
) -> None:
    quota = Quota(AGENT, max_files=1)
    await put_text(ports, "one", quotas=(quota,))

    outcome = await try_write(ports, "three", path=RULES, quotas=(quota,))

    assert outcome == QuotaExceeded(quota, files=2, size=8)
    assert await read_texts(ports, AGENT) == {"SOUL.md": "one"}


async def test_at_the_limit_files_can_be_replaced_deleted_and_exchanged(ports: Ports) -> None:
    quota = Quota(AGENT, max_files=1)
    await put_text(ports, "one", quotas=(quota,))

    await put_text(ports, "a longer one", quotas=(quota,))
    exchange = commit(
        await write(ports, "new", path=RULES), await write(ports, None), quotas=(quota,)
    )
    assert isinstance((await ports.trees.commit([exchange]))[0], Applied)
    await put_text(ports, None, path=RULES, quotas=(quota,))
    await put_text(ports, "space again", quotas=(quota,))

    assert await read_texts(ports, AGENT) == {"SOUL.md": "space again"}


async def test_a_tombstone_does_not_count_and_recreating_its_path_does(ports: Ports) -> None:
    quota = Quota(AGENT, max_files=1)
    await put_text(ports, "one", path=SOUL)
    await put_text(ports, None, path=SOUL)
    await put_text(ports, "two", path=RULES, quotas=(quota,))

    assert await try_write(ports, "back", path=SOUL, quotas=(quota,)) == QuotaExceeded(quota, 2, 7)


async def test_files_over_a_lowered_limit_can_still_change(ports: Ports) -> None:
    for path in ("a", "b", "c"):
        await put_text(ports, "12345", path=Path(path))
    lowered = Quota(AGENT, max_files=1, max_bytes=4)

    await put_text(ports, "12345", path=Path("a"), quotas=(lowered,))
    await put_text(ports, "1", path=Path("a"), quotas=(lowered,))
    await put_text(ports, None, path=Path("b"), quotas=(lowered,))

    assert await try_write(ports, "", path=Path("d"), quotas=(lowered,)) == QuotaExceeded(
        lowered, 3, 6
    )
    assert await try_write(ports, "12", path=Path("a"), quotas=(lowered,)) == QuotaExceeded(
        lowered, 2, 7
    )
    assert await read_texts(ports, AGENT) == {"a": "1", "c": "12345"}


async def test_bytes_are_counted_over_all_live_files(ports: Ports) -> None:
    quota = Quota(AGENT, max_files=10, max_bytes=10)
    await put_text(ports, "12345", path=SOUL, quotas=(quota,))
    await put_text(ports, "12345", path=RULES, quotas=(quota,))

    assert await try_write(ports, "123456", path=SOUL, quotas=(quota,)) == QuotaExceeded(
        quota, 2, 11
    )
    await put_text(ports, None, path=RULES, quotas=(quota,))
    await put_text(ports, "1234567890", path=SOUL, quotas=(quota,))
    assert await try_write(ports, "1", path=RULES, quotas=(quota,)) == QuotaExceeded(quota, 2, 11)
    assert isinstance(await try_write(ports, "", path=RULES, quotas=(quota,)), Applied)


async def test_a_quota_applies_to_its_own_scope_only(ports: Ports) -> None:
    quotas = (Quota(AGENT, max_files=1), Quota(TEMPLATE, max_files=0))
    writes = [await write(ports, "text", path=path) for path in (SOUL, RULES)]
    shared = await write(ports, "text", TEMPLATE)

    assert isinstance(await try_write(ports, "one", quotas=quotas), Applied)
    [outcome] = await ports.trees.commit([commit(writes[0], shared, quotas=quotas)])
    assert outcome == QuotaExceeded(quotas[1], 1, 4)
    [outcome] = await ports.trees.commit([commit(*writes, quotas=quotas)])
    assert outcome == QuotaExceeded(quotas[0], 2, 8)
    assert await read_texts(ports, TEMPLATE) == {}
    assert await read_texts(ports, AGENT) == {"SOUL.md": "one"}


async def test_of_two_writers_adding_the_last_file_one_is_refused(ports: Ports) -> None:
    quota = Quota(AGENT, max_files=1)

    outcomes = await asyncio.gather(
        try_write(ports, "mine", path=SOUL, quotas=(quota,)),
        try_write(ports, "mine", path=RULES, quotas=(quota,)),
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Applied", "QuotaExceeded"]


async def test_of_many_concurrent_writers_only_as_many_as_fit_are_applied(ports: Ports) -> None:
    quota = Quota(AGENT, max_files=5, max_bytes=18)

    outcomes = await asyncio.gather(
        *[try_write(ports, "text", path=Path(f"{n}"), quotas=(quota,)) for n in range(16)]
    )

    refused = [outcome for outcome in outcomes if isinstance(outcome, QuotaExceeded)]
    assert len(refused) == 12
    assert set(refused) == {QuotaExceeded(quota, 5, 20)}
    assert len(await read_texts(ports, AGENT)) == 4
