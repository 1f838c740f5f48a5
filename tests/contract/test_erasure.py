"""Erasure: a scope's files, history and runs go, what others refer to stays."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.commits import AGENT, TEMPLATE, commit, put_text, read_texts, start_run, write
from tests.support.contract_stores import LARGE_BLOB_STORES, Ports
from tests.support.populated_store import NOW

from carrel.actions.maintenance.integrity import check_store
from carrel.core.identifiers import Path
from carrel.core.runs import Audience, RunStatus
from carrel.core.sessions.session import Session
from carrel.core.store.commit import Applied
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio
stores = LARGE_BLOB_STORES


async def find_problems(ports: Ports) -> list[str]:
    findings = await check_store(ports.upkeep, None, now=NOW, grace=0)
    return [f"{finding}" for finding in findings.items]


async def test_an_erased_scope_has_no_files_history_or_snapshots_and_the_store_is_consistent(
    ports: Ports,
) -> None:
    for text in ("first", "second", None, "third"):
        await put_text(ports, text, at=NOW)
    await start_run(ports, "run_1")
    [started] = await ports.runs.get("acme", ["run_1"])
    assert started is not None
    failed = replace(started, status=RunStatus.RUNNING, reason="no answer about the plan")
    assert await ports.runs.update(failed, started)
    [before] = await ports.trees.revisions([AGENT])
    assert await ports.erasure.erase_scopes([AGENT], NOW) == 4
    [tree] = await ports.trees.read([AGENT])
    assert not tree.heads
    assert await ports.trees.log(AGENT) == ()
    [run] = await ports.runs.get("acme", ["run_1"])
    assert run is not None
    assert (run.status, run.ended_at) == (RunStatus.CANCELLED, NOW)
    assert (run.snapshot_kept, run.snapshot, run.variables) == (False, (), {})
    assert not run.reason
    assert await ports.trees.revisions([AGENT]) == (before + 1,)
    assert await find_problems(ports) == []


async def test_a_scope_can_be_erased_again_and_written_again(ports: Ports) -> None:
    await put_text(ports, "first", at=NOW)
    assert await ports.erasure.erase_scopes([AGENT, TEMPLATE], NOW) == 1
    assert await ports.erasure.erase_scopes([AGENT, TEMPLATE], NOW) == 0
    await put_text(ports, "again", at=NOW)
    assert list((await read_texts(ports, AGENT)).values()) == ["again"]
    assert await find_problems(ports) == []


async def test_content_that_another_scope_refers_to_survives(ports: Ports) -> None:
    await put_text(ports, "shared", at=NOW)
    [tree] = await ports.trees.read([AGENT])
    [head] = tree.heads.values()
    copy = await write(ports, "ignored", scope=TEMPLATE)
    [outcome] = await ports.trees.commit(
        [commit(type(copy)(TEMPLATE, Path("copy.md"), head.entry), at=NOW)]
    )
    assert isinstance(outcome, Applied)
    await ports.erasure.erase_scopes([AGENT], NOW)
    [copied] = (await ports.trees.read([TEMPLATE]))[0].heads.values()
    assert copied.entry is not None
    assert await ports.blobs.get([copied.entry.blob]) == {copied.entry.blob.digest: b"shared"}
    assert await find_problems(ports) == []


async def test_sessions_and_files_of_a_deleted_agent_are_orphans(ports: Ports) -> None:
    assert await ports.erasure.find_orphans() == ()
    session = Session(
        tenant="acme",
        id="5f0c8a52-2f5e-4d3c-9f10-000000000001",
        agent="agt_gone",
        mode=Audience.MAIN,
        plugin="",
        started_at=NOW,
        last_entry_at=NOW,
    )
    await ports.sessions.start([session])
    assert await ports.erasure.find_orphans() == ()  # its record may have been lost
    change = RecordChange("acme", RecordType.AGENT, "agt_gone", None)
    await ports.trees.commit([commit(reason="delete an agent", changes=(change,))])
    assert await ports.erasure.find_orphans() == (("acme", "agt_gone"),)
    assert await ports.sessions.delete([session]) == 1
    assert await ports.erasure.find_orphans() == ()
