"""Scopes, paths and short commit helpers of the contract tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.contract_stores import Store

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import Audience, Run, RunStatus, SnapshotLayer
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Applied, Commit, Outcome, Write
from carrel.core.store.entry import MARKDOWN, Entry, Head
from carrel.core.store.event import Event, EventFilter

ACME, GLOBEX = "acme", "globex"
AGENT = Scope(ACME, ScopeKind.AGENT, "marco")
TEMPLATE = Scope(ACME, ScopeKind.TEMPLATE, "sales")
DEFAULTS = Scope(ACME, ScopeKind.DEFAULTS, "defaults")
FOREIGN_AGENT = Scope(GLOBEX, ScopeKind.AGENT, "marco")
SOUL, RULES = Path("SOUL.md"), Path("GUARDRAILS.md")
NOW = 1_800_000_000_000


async def blob(ports: Store, text: str) -> Blob:
    [stored] = await ports.blobs.put([text.encode()])
    return stored


async def entry(ports: Store, text: str, *, base: str | None = None, type: str = MARKDOWN) -> Entry:
    beneath = None if base is None else await blob(ports, base)
    return Entry(await blob(ports, text), beneath, type)


async def write(ports: Store, text: str | None, scope: Scope = AGENT, path: Path = SOUL) -> Write:
    """A write of this text; None writes a tombstone."""
    return Write(scope, path, None if text is None else await entry(ports, text))


def commit(*writes: Write, **more: Any) -> Commit:
    return Commit(writes, **{"author": "ada", "reason": "to see", "at": NOW, **more})


async def try_write(
    ports: Store, text: str | None, scope: Scope = AGENT, path: Path = SOUL, **more: Any
) -> Outcome:
    """Try one write and return its outcome."""
    [outcome] = await ports.trees.commit([commit(await write(ports, text, scope, path), **more)])
    return outcome


async def put_text(
    ports: Store, text: str | None, scope: Scope = AGENT, path: Path = SOUL, **more: Any
) -> Head:
    """Make one write that must succeed."""
    [head] = assert_applied(await try_write(ports, text, scope, path, **more)).heads
    return head


def assert_applied(outcome: Outcome) -> Applied:
    assert isinstance(outcome, Applied), outcome
    return outcome


async def read_texts(
    ports: Store, layer: Scope | SnapshotLayer, *, prefix: str = ""
) -> dict[str, str]:
    """The live files of a layer by path."""
    [tree] = await ports.trees.read([layer], prefix=prefix)
    assert all(head.entry for head in tree.heads.values())
    entries = {path.text: head.entry for path, head in tree.heads.items() if head.entry}
    contents = await ports.blobs.get([entry.blob for entry in entries.values()])
    return {path: contents[entry.blob.digest].decode() for path, entry in entries.items()}


async def version_numbers(ports: Store, scope: Scope = AGENT, path: Path = SOUL) -> list[int]:
    """The retained versions of a path, newest first."""
    history = await ports.trees.history(scope, path, limit=1000)
    return [version.head.version for version in history]


def new_run(id: str, scope: Scope = AGENT, **more: Any) -> Run:
    return Run(
        id, scope.tenant, scope, "noop", Audience.MAIN, RunStatus.RUNNING, "ada", NOW, **more
    )


async def start_run(ports: Store, id: str, *layers: Scope | SnapshotLayer) -> Run:
    [started] = await ports.runs.start([(new_run(id), layers or (AGENT,))])
    return started


async def list_events(ports: Store, **filters: Any) -> Sequence[Event]:
    """Every event of the tenant so far that matches the filter."""
    return await ports.events.read_after(
        None, EventFilter(**{"tenant": ACME, **filters}), limit=10_000
    )
