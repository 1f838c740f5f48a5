"""Finding what an agent's config refers to: its sandboxes and its shared workspaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from carrel.core.agents.config import Config
from carrel.core.errors import Malformed, Missing
from carrel.core.identifiers import identifier
from carrel.core.sandbox.tool_access import EMPTY, Hands, PermissionMode, Reach, Sandbox, namespace
from carrel.core.store.record import Noun, Record
from carrel.ports import World


async def hands_of(world: World, tenant: str, config: Config) -> Hands:
    """What it can reach now, in two questions at most. Raises Missing, which names what is gone.

    Asked once for as long as no record changes.
    """
    if config.sandbox is None and not config.workspaces:
        return EMPTY
    key = ("hands", tenant, config.sandbox, config.workspaces)
    revision = await world.records.revision()
    found: Hands | None = world.memo.find(revision, key)
    if found is None:
        found = await _found(world, tenant, config)
        world.memo.keep(revision, key, found)
    return found


async def _found(world: World, tenant: str, config: Config) -> Hands:
    named = [config.sandbox, *(one.sandbox for one in config.workspaces)]
    wanted = [id for id in named if isinstance(id, str)]
    sandboxes = await _records(world, tenant, Noun.SANDBOX, wanted)
    ids = [one.workspace_id for one in config.workspaces]
    workspaces = await _records(world, tenant, Noun.WORKSPACE, ids)

    def sandbox(id: str | None) -> Sandbox | None:
        if id is None:
            return None
        if id not in sandboxes:
            raise Missing(f"Referenced sandbox not found: {id}")
        return sandbox_of(sandboxes[id])

    own = sandbox(config.sandbox)
    reaches = []
    for one in config.workspaces:
        if one.workspace_id not in workspaces:
            raise Missing(f'Referenced workspace not found: {one.workspace_id} (as "{one.name}")')
        through = own if one.sandbox is UNSET else sandbox(one.sandbox)
        reaches.append(_reach(one.name, workspaces[one.workspace_id], through))
    return Hands(own, tuple(reaches))


async def _records(
    world: World, tenant: str, noun: Noun, ids: Sequence[str]
) -> Mapping[str, Record]:
    asked = sorted({id for id in ids if _possible(id)})
    records = await world.records.get(tenant, noun, asked) if asked else ()
    return {record.id: record for record in records if record is not None}


def _possible(id: str) -> bool:
    try:
        identifier(id)
    except Malformed:
        return False
    return True


def sandbox_of(record: Record) -> Sandbox:
    config = record.body["config"]
    mode = PermissionMode(config["permissionMode"])
    return Sandbox(record.id, record.revision, mode, config, record.tenant)


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
