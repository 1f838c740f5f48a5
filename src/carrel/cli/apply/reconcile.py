"""Reconciles an agent with its desired state; changes only what differs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from carrel.cli.apply.agents_file import DesiredAgent
from carrel.cli.dry_run import DryRun
from carrel.cli.sync.sync_pass import PassResult
from carrel.cli.sync.sync_state import read_state
from carrel.cli.sync.watch_loop import open_pair, sync_until_stable
from carrel_client import (
    AsyncClient,
    CarrelError,
    NotFound,
    ServerError,
    ServerUnreachable,
    Unauthenticated,
)

SETTLE_SECONDS: Final = 0.3
_FATAL_ERRORS: Final = (ServerUnreachable, ServerError, Unauthenticated)


@dataclass(slots=True)
class ApplyResult:
    """Result for one agent."""

    id: str
    result: str = "unchanged"
    """created, changed, unchanged or failed."""
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Changed fields by name: old and new value."""
    files: PassResult | None = None
    """Result of the upload from its directory, if that was scanned."""
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem and (self.files is None or self.files.ok)


async def apply_agent(
    client: AsyncClient, server: str, desired: DesiredAgent, *, dry_run: DryRun | None = None
) -> ApplyResult:
    """Create or update one agent, or report what would change.

    Agents of one file may depend on each other's settings, so they share the dry run; files are
    those of one agent. Raises CarrelError for failures that would hit every other agent too.
    """
    outcome = ApplyResult(desired.id)
    try:
        await _apply_config(dry_run.client if dry_run else client, desired, outcome)
        client = dry_run.fork_client() if dry_run else client
        await _upload_files(client, server, desired, outcome, dry_run is not None)
    except _FATAL_ERRORS:
        raise
    except (CarrelError, OSError) as problem:
        outcome.problem = str(problem)
        if not outcome.changes:
            outcome.result = "failed"
    return outcome


async def _apply_config(client: AsyncClient, desired: DesiredAgent, outcome: ApplyResult) -> None:
    facts: dict[str, Any] = {}
    if "name" in desired.facts:
        facts["name"] = desired.facts["name"]
    if "template" in desired.facts:
        facts["templateId"] = await _resolve_template_id(client, desired.facts["template"])
    try:
        current = (await client.agents.get(desired.id)).facts
    except NotFound:
        config = {name: value for name, value in desired.config.items() if value is not None}
        facts = {"name": desired.id, **facts, "config": config}
        await client.agents.create(desired.id, **_to_arguments(facts))
        outcome.result, outcome.changes = (
            "created",
            {name: (None, new_value) for name, new_value in facts.items()},
        )
        return
    config = _merge_config(current["config"], desired.config)
    changes = _differences(current, facts)
    if config != current["config"]:
        facts["config"] = config
        changes |= {
            f"config.{name}": pair for name, pair in _config_differences(current, config).items()
        }
    if changes:
        changed = {
            name: new_value for name, new_value in facts.items() if current.get(name) != new_value
        }
        await client.agents.change(str(current["id"]), **_to_arguments(changed))
    outcome.changes = changes
    outcome.result = "changed" if changes else "unchanged"


async def _resolve_template_id(client: AsyncClient, name: str | None) -> str | None:
    return None if name is None else (await client.templates.get(name)).id


def _to_arguments(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Convert API field names to arguments of the client."""
    return {"template_id" if name == "templateId" else name: facts[name] for name in facts}


def _merge_config(current: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Merge desired settings over current ones; None removes a setting."""
    return {name: value for name, value in {**current, **desired}.items() if value is not None}


def _differences(
    current: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    return {
        name: (current.get(name), new_value)
        for name, new_value in facts.items()
        if current.get(name) != new_value
    }


def _config_differences(
    current: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    before = current["config"]
    names = sorted({*before, *config})
    pairs = {name: (before.get(name), config.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


async def _upload_files(
    client: AsyncClient, server: str, desired: DesiredAgent, outcome: ApplyResult, dry_run: bool
) -> None:
    """Upload the directory's files, the first time only.

    Later changes are synced by `carrel sync`.
    """
    path = _path_to_import(desired)
    if path is None:
        return
    opening = open_pair(client, server, desired.id, path, SETTLE_SECONDS, dry_run=dry_run)
    async with opening as (pair, _):
        outcome.files = await sync_until_stable(pair, SETTLE_SECONDS, upload_only=True)


def _path_to_import(desired: DesiredAgent) -> str | None:
    """Return the directory if it exists and has not been fully imported."""
    path = desired.workspace
    if path is None or not os.path.isdir(path):
        return None
    state = read_state(path)
    is_imported = state is not None and state.is_complete and state.agent == desired.id
    return None if is_imported else path
