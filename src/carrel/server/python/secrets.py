"""Secrets: their values go in and never come out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel.actions.accounts import secrets
from carrel.actions.records import Page
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, every, when


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret without its value."""

    id: str
    created_at: datetime
    updated_at: datetime


def _secret(record: Record) -> Secret:
    return Secret(record.id, when(record.created_at), when(record.updated_at))


class Secrets(Resource):
    async def put(self, id: str, value: str) -> Secret:
        """Keep a value: from now on every write has ``[REDACTED:<id>]`` in its place."""
        return _secret(await secrets.put(self._ports, self._actor, id, value))

    async def get(self, id: str) -> Secret:
        return _secret(await secrets.get(self._ports, self._actor, id))

    async def list(self) -> tuple[Secret, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await secrets.listing(self._ports, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_secret, await every(page)))

    async def delete(self, id: str) -> None:
        """Forget a value: it is no longer redacted."""
        await secrets.delete(self._ports, self._actor, id)
