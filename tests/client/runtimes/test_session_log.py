"""Records of runtimes in sessions, over every driver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from carrel_client import NewEntry
from carrel_client.drivers import await_steps
from carrel_client.errors import Conflict, NotFound
from carrel_client.runtimes.session_log import SessionLog, SessionLogs, items_of_kind

pytestmark = pytest.mark.anyio


def log_of(api: Any, session: str = "chat", agent: str = "ada") -> SessionLog:
    return SessionLog(driver_of(api), agent, session)


def driver_of(api: Any) -> Any:
    return getattr(api, "_resource", api)._driver


async def run(api: Any, steps: Any) -> Any:
    return await await_steps(driver_of(api), steps)


def records(*numbers: int) -> list[NewEntry]:
    return [NewEntry(role="system", item={"kind": "test", "n": number}) for number in numbers]


async def numbers(api: Any, log: SessionLog) -> list[int]:
    entries = await run(api, log.read())
    return [item["n"] for item in items_of_kind(entries, "test")]


@pytest.fixture(autouse=True)
async def ada(api: Any) -> None:
    await api.agents.create("ada", "Ada")


async def test_session_does_not_exist_before_its_first_record(api: Any) -> None:
    log = log_of(api)
    assert await run(api, log.read()) is None
    await run(api, log.append(records(1)))
    assert await numbers(api, log) == [1]


async def test_log_fetches_what_others_have_appended(api: Any) -> None:
    log, other = log_of(api), log_of(api)
    await run(api, log.append(records(1, 2)))
    for _ in range(2):
        assert await numbers(api, log) == [1, 2]
    await run(api, other.append(records(3)))
    assert await numbers(api, log) == [1, 2, 3]


async def test_records_of_others_are_left_out(api: Any) -> None:
    log = log_of(api)
    await run(api, log.append([NewEntry(role="user", content="Hello?"), *records(1)]))
    await run(api, log.append([NewEntry(role="tool", item=["a", "list"])]))
    assert len(await run(api, log.read())) == 3
    assert await numbers(api, log) == [1]


async def test_many_records_come_back_in_order(api: Any) -> None:
    log, reader = log_of(api), log_of(api)
    await run(api, log.append(records(*range(1203))))
    assert await numbers(api, reader) == list(range(1203))


async def test_removed_entries_are_forgotten(api: Any) -> None:
    log, session_id = log_of(api), "chat"
    await run(api, log.append(records(1, 2, 3)))
    assert await numbers(api, log) == [1, 2, 3]
    session = await api.agent("ada").sessions.get(session_id)
    await session.pop()
    await run(api, log.append(records(4)))
    assert await numbers(api, log) == [1, 2, 4]
    await session.clear()
    assert await numbers(api, log) == []
    await run(api, log.append(records(5)))
    assert await numbers(api, log) == [5]


async def test_concurrent_writers_each_read_their_own_record(api: Any) -> None:
    log, counts = log_of(api), []
    await run(api, log.append(records(-1)))

    async def write_and_read(number: int) -> None:
        await run(api, log.append(records(number)))
        values = await numbers(api, log)
        assert number in values
        assert len(values) == len(set(values))
        counts.append(len(values))

    await asyncio.gather(*map(write_and_read, range(12)))
    assert max(counts) == 13
    assert sorted(await numbers(api, log)) == list(range(-1, 12))


async def test_deleted_session_is_gone(api: Any) -> None:
    log = log_of(api)
    await run(api, log.append(records(1)))
    await run(api, log.delete())
    await run(api, log.delete())
    assert await run(api, log.read()) is None


async def test_session_that_others_have_deleted_is_started_again(api: Any) -> None:
    log = log_of(api)
    await run(api, log.append(records(1)))
    assert await numbers(api, log) == [1]
    await (await api.agent("ada").sessions.get("chat")).delete()
    await run(api, log.append(records(2)))
    assert await numbers(api, log) == [2]


async def test_record_of_an_unknown_agent_is_refused(api: Any) -> None:
    with pytest.raises(NotFound):
        await run(api, log_of(api, agent="nobody").append(records(1)))


async def test_logs_that_were_used_last_are_kept(api: Any) -> None:
    logs = SessionLogs(driver_of(api), "ada")
    first = logs.log("0")
    assert logs.log("0") is first
    for number in range(300):
        logs.log(str(number))
    assert logs.log("299") is logs.log("299")
    assert logs.log("0") is not first


def next_record(calls: list[int]) -> Any:
    """A choice whose record is the number of those before it."""

    def choose(entries: Any) -> list[NewEntry]:
        before = items_of_kind(entries, "test")
        calls.append(len(before))
        return records(len(before))

    return choose


async def test_writer_that_knows_all_entries_asks_once(api: Any) -> None:
    log, calls = log_of(api), list[int]()
    for _ in range(3):
        assert await run(api, log.append_chosen(next_record(calls)))
    assert calls == [0, 1, 2]
    assert await numbers(api, log) == [0, 1, 2]


async def test_writer_asks_again_after_others_have_appended(api: Any) -> None:
    log, other, calls = log_of(api), log_of(api), list[int]()
    await run(api, log.append_chosen(next_record(calls)))
    await run(api, other.append(records(1, 2)))
    await run(api, log.append_chosen(next_record(calls)))
    assert calls == [0, 1, 3]
    assert await numbers(api, log) == [0, 1, 2, 3]


async def test_refusal_and_empty_choice_are_final_only_after_reading(api: Any) -> None:
    log, other = log_of(api), log_of(api)
    await run(api, log.append(records(0)))
    await numbers(api, log)

    def require(number: int) -> Any:
        def choose(entries: Any) -> list[NewEntry]:
            if number not in (stored := [item["n"] for item in items_of_kind(entries, "test")]):
                raise LookupError(number)
            return [] if number + 10 in stored else records(number + 10)

        return choose

    with pytest.raises(LookupError):
        await run(api, log.append_chosen(require(1)))
    await run(api, other.append(records(1)))
    assert await run(api, log.append_chosen(require(1)))
    await run(api, other.append(records(10)))
    assert not await run(api, log.append_chosen(require(0)))
    assert await numbers(api, log) == [0, 1, 11, 10]


async def test_writers_at_the_same_time_each_count_the_others(api: Any) -> None:
    logs, calls = [log_of(api) for _ in range(4)], list[int]()
    steps = [log.append_chosen(next_record(calls)) for log in logs for _ in range(4)]
    assert all(await asyncio.gather(*[run(api, step) for step in steps]))
    assert await numbers(api, log_of(api)) == list(range(16))


async def test_writer_notices_removed_entries_and_a_deleted_session(api: Any) -> None:
    log, calls = log_of(api), list[int]()
    for _ in range(3):
        await run(api, log.append_chosen(next_record(calls)))
    session = await api.agent("ada").sessions.get("chat")
    await session.pop()
    await run(api, log.append_chosen(next_record(calls)))
    assert calls == [0, 1, 2, 3, 2]
    await session.delete()
    await run(api, log.append_chosen(next_record(calls)))
    assert calls == [0, 1, 2, 3, 2, 3, 0]
    assert await numbers(api, log) == [0]


async def test_choice_of_many_records_is_appended_in_order(api: Any) -> None:
    log = log_of(api)
    assert await run(api, log.append_chosen(lambda _: records(*range(1203))))
    assert await run(api, log.append_chosen(lambda entries: records(len(entries))))
    assert await numbers(api, log_of(api)) == list(range(1204))


async def test_closed_session_refuses_what_is_chosen(api: Any) -> None:
    log = log_of(api)
    await run(api, log.append(records(0)))
    await (await api.agent("ada").sessions.get("chat")).close()
    with pytest.raises(Conflict):
        await run(api, log.append_chosen(lambda _: records(1)))


async def test_several_logs_are_read_together(api: Any) -> None:
    logs = SessionLogs(driver_of(api), "ada")
    await run(api, logs.log("a").append(records(*range(700))))
    await run(api, logs.log("b/c").append(records(1)))

    async def read() -> list[int | None]:
        entries = await run(api, logs.read_all(["a", "b/c", "none"]))
        return [None if rows is None else len(rows) for rows in entries]

    assert await read() == [700, 1, None]
    await run(api, log_of(api, "b/c").append(records(2)))
    await (await api.agent("ada").sessions.get("a")).pop()
    assert await read() == [699, 2, None]
    await (await api.agent("ada").sessions.get("b/c")).delete()
    await run(api, log_of(api, "none").append(records(1)))
    assert await read() == [699, None, 1]
