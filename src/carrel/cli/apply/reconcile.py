"""Making an agent what a file says: compared first, so that what is so already is left alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from carrel.cli.apply.agents_file import DesiredAgent
from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.scan import DirectoryScanner
from carrel.cli.sync.sync_pass import PassResult, SyncPair, planned
from carrel.cli.sync.sync_state import SyncState, noted_at
from carrel.cli.sync.watch_loop import opened, passes
from carrel_client import (
    AsyncClient,
    CarrelError,
    NotFound,
    ServerError,
    ServerUnreachable,
    Unauthenticated,
)

SETTLE: Final = 0.3
_ENDS_ALL: Final = (ServerUnreachable, ServerError, Unauthenticated)


@dataclass(slots=True)
class ApplyResult:
    """What became of one agent."""

    id: str
    result: str = "unchanged"
    """created, changed, unchanged or failed."""
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """What is another now, by its name: from what, to what."""
    files: PassResult | None = None
    """What was taken from its directory, if that was looked at."""
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem and (self.files is None or self.files.ok)


async def apply_agent(
    desk: AsyncClient, server: str, wanted: DesiredAgent, *, dry: bool
) -> ApplyResult:
    """Make it so, or say what would be done. Raises CarrelError where no other could be either."""
    done = ApplyResult(wanted.id)
    try:
        await _agent(desk, wanted, done, dry)
        await _files(desk, server, wanted, done, dry)
    except _ENDS_ALL:
        raise
    except (CarrelError, OSError) as problem:
        done.problem = str(problem)
        if not done.changes:
            done.result = "failed"
    return done


async def _agent(desk: AsyncClient, wanted: DesiredAgent, done: ApplyResult, dry: bool) -> None:
    facts: dict[str, Any] = {}
    if "name" in wanted.facts:
        facts["name"] = wanted.facts["name"]
    if "template" in wanted.facts:
        facts["templateId"] = await _template(desk, wanted.facts["template"])
    try:
        was = (await desk.agents.get(wanted.id)).facts
    except NotFound:
        config = {name: value for name, value in wanted.config.items() if value is not None}
        facts = {"name": wanted.id, **facts, "config": config}
        if not dry:
            await desk.agents.create(wanted.id, **_fields(facts))
        done.result, done.changes = "created", {name: (None, to) for name, to in facts.items()}
        return
    config = _merged(was["config"], wanted.config)
    done_here = _differences(was, facts)
    if config != was["config"]:
        facts["config"] = config
        done_here |= {f"config.{name}": pair for name, pair in _settings(was, config).items()}
    if done_here and not dry:
        changed = {name: to for name, to in facts.items() if was.get(name) != to}
        await desk.agents.change(str(was["id"]), **_fields(changed))
    done.changes = done_here
    done.result = "changed" if done_here else "unchanged"


async def _template(desk: AsyncClient, name: str | None) -> str | None:
    return None if name is None else (await desk.templates.get(name)).id


def _fields(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an agent as arguments of the client."""
    return {"template_id" if name == "templateId" else name: facts[name] for name in facts}


def _merged(was: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What the file says over what there is: what it does not speak of stays."""
    return {name: value for name, value in {**was, **wanted}.items() if value is not None}


def _differences(was: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (was.get(name), to) for name, to in facts.items() if was.get(name) != to}


def _settings(was: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    before = was["config"]
    names = sorted({*before, *config})
    pairs = {name: (before.get(name), config.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


async def _files(
    desk: AsyncClient, server: str, wanted: DesiredAgent, done: ApplyResult, dry: bool
) -> None:
    """Take over what its directory holds, once: from then on carrel sync keeps both the same."""
    where = _untaken(wanted)
    if where is None:
        return
    if dry:
        done.files = await _plan(desk, wanted, where, is_new=done.result == "created")
        return
    async with opened(desk, server, wanted.id, where, SETTLE) as (sides, _):
        done.files = await passes(sides, SETTLE, taking=True)


def _untaken(wanted: DesiredAgent) -> str | None:
    """Its directory, if there is one whose files have not all been dealt with."""
    where = wanted.workspace
    if where is None or not os.path.isdir(where):
        return None
    note = noted_at(where)
    taken = note is not None and note.whole and note.agent == wanted.id
    return None if taken else where


async def _plan(desk: AsyncClient, wanted: DesiredAgent, where: str, *, is_new: bool) -> PassResult:
    folder = SyncedDirectory(where)
    try:
        sides = SyncPair(
            folder,
            DirectoryScanner(folder, 0),
            desk.agent(wanted.id),
            SyncState(server="", agent=""),
        )
        return await planned(sides, is_new=is_new)
    finally:
        folder.close()
