"""Finding what an agent's config refers to: its sandboxes and its shared workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from carrel.core.config import Config
from carrel.core.errors import Missing
from carrel.core.hands import Hands, PermissionMode, Reach, Sandbox, namespace
from carrel.core.record import Noun, Record
from carrel.ports import World


async def hands_of(world: World, tenant: str, config: Config) -> Hands:
    """What it can reach now. Raises Missing, which names what is gone."""
    wanted = {config.sandbox, *(one.sandbox for one in config.workspaces if one.sandbox)}
    sandboxes = await _found(world, tenant, Noun.SANDBOX, {id for id in wanted if id} - {UNSET})
    ids = {one.workspace_id for one in config.workspaces}
    workspaces = await _found(world, tenant, Noun.WORKSPACE, ids)

    def sandbox(id: str | None) -> Sandbox | None:
        if id is None:
            return None
        if id not in sandboxes:
            raise Missing(f"Referenced sandbox not found: {id}")
        return _sandbox(sandboxes[id])

    reaches = []
    for one in config.workspaces:
        if one.workspace_id not in workspaces:
            raise Missing(f'Referenced workspace not found: {one.workspace_id} (as "{one.name}")')
        through = sandbox(config.sandbox if one.sandbox is UNSET else one.sandbox)
        reaches.append(_reach(one.name, workspaces[one.workspace_id], through))
    return Hands(sandbox(config.sandbox), tuple(reaches))


async def _found(world: World, tenant: str, noun: Noun, ids: set[Any]) -> Mapping[str, Record]:
    asked = sorted(ids)
    records = await world.records.get(tenant, noun, asked) if asked else ()
    return {record.id: record for record in records if record is not None}


def _sandbox(record: Record) -> Sandbox:
    config = record.body["config"]
    return Sandbox(record.id, record.revision, PermissionMode(config["permissionMode"]), config)


def _reach(name: str, record: Record, sandbox: Sandbox | None) -> Reach:
    harness = record.body["config"].get("harness", {}).get("enabled") is not False
    return Reach(
        name,
        record.id,
        namespace(record.tenant, record.id),
        sandbox,
        record.body.get("description") or "",
        harness,
    )
