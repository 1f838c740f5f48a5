"""Tenants: whoever holds the store may make them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel.actions.accounts import tenants
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, when


@dataclass(frozen=True, slots=True)
class Tenant:
    id: str
    slug: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewTenant:
    tenant: Tenant
    owner_id: str
    owner_token: str
    """For HTTP, shown this once."""


def _tenant(record: Record) -> Tenant:
    return Tenant(record.id, record.body["slug"], record.body["name"], when(record.created_at))


class Tenants(Resource):
    async def create(self, slug: str, name: str, *, owner: str, email: str) -> NewTenant:
        """Raises Taken where another has the slug."""
        made = await tenants.create(self._ports, slug, name, owner, email)
        return NewTenant(_tenant(made.tenant), made.owner.id, made.token)

    async def me(self) -> Tenant:
        return _tenant(await tenants.me(self._ports, self._actor))

    async def rename(self, name: str) -> Tenant:
        return _tenant(await tenants.rename(self._ports, self._actor, name))
