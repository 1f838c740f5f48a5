"""Sandboxes and shared workspaces of the account, which agents refer to by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack

from carrel.actions.sandbox import sandboxes, workspaces
from carrel.core.sandbox.sandbox_config import masked
from carrel.core.sandbox.tool_access import namespace
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, only, when


@dataclass(frozen=True, slots=True)
class Sandbox:
    id: str
    name: str
    description: str | None
    config: Mapping[str, Any]
    """Secrets in it are masked."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SharedWorkspace:
    """A shared workspace as its account describes it; `desk.workspace(id)` has its files."""

    id: str
    namespace: str
    name: str
    description: str | None
    config: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime


class Fields(TypedDict, total=False):
    """What can be changed; None takes a description away, or sets a config back."""

    name: str
    description: str | None
    config: Mapping[str, Any] | None


def _sandbox(record: Record) -> Sandbox:
    return Sandbox(
        record.id,
        record.body["name"],
        record.body.get("description"),
        masked(record.body["config"]),
        when(record.created_at),
        when(record.updated_at),
    )


def _described(record: Record) -> SharedWorkspace:
    return SharedWorkspace(
        record.id,
        namespace(record.tenant, record.id),
        record.body["name"],
        record.body.get("description"),
        record.body["config"],
        when(record.created_at),
        when(record.updated_at),
    )


class Sandboxes(Resource):
    async def create(
        self, name: str, config: Mapping[str, Any] | None = None, *, description: str | None = None
    ) -> Sandbox:
        """Raises Malformed."""
        given = {"name": name, "config": config, "description": description}
        return _sandbox(await sandboxes.create(self._ports, self._actor, given))

    async def get(self, id: str) -> Sandbox:
        return _sandbox(await sandboxes.get(self._ports, self._actor, id))

    async def list(self) -> tuple[Sandbox, ...]:
        return tuple(map(_sandbox, await sandboxes.listing(self._ports, self._actor)))

    async def change(self, id: str, **fields: Unpack[Fields]) -> Sandbox:
        """Change name, description or config, which is merged: None takes away what it names."""
        given = only(fields, Fields)
        return _sandbox(await sandboxes.patch(self._ports, self._actor, id, given))

    async def delete(self, id: str) -> None:
        await sandboxes.delete(self._ports, self._actor, id)


class Workspaces(Resource):
    async def create(
        self, name: str, config: Mapping[str, Any] | None = None, *, description: str | None = None
    ) -> SharedWorkspace:
        """Raises Malformed."""
        given = {"name": name, "config": config, "description": description}
        return _described(await workspaces.create(self._ports, self._actor, given))

    async def get(self, id: str) -> SharedWorkspace:
        return _described(await workspaces.get(self._ports, self._actor, id))

    async def list(self) -> tuple[SharedWorkspace, ...]:
        return tuple(map(_described, await workspaces.listing(self._ports, self._actor)))

    async def change(self, id: str, **fields: Unpack[Fields]) -> SharedWorkspace:
        """Change name, description or config, which is merged: None takes away what it names."""
        given = only(fields, Fields)
        return _described(await workspaces.patch(self._ports, self._actor, id, given))

    async def delete(self, id: str) -> None:
        """With all files in it, in one commit."""
        await workspaces.delete(self._ports, self._actor, id)
