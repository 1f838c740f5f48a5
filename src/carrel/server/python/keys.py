"""Keys, with which programs come in over HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from carrel.actions.accounts import keys
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.records import Page
from carrel.core.access import CredentialKind, Permission
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, every, milliseconds, one_of, when


@dataclass(frozen=True, slots=True)
class Key:
    """A key without what makes it one."""

    id: str
    name: str
    kind: str
    person: str | None
    agent: str | None
    workspace: str | None
    scopes: tuple[str, ...] | None
    """None: all that its holder may do."""
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey:
    key: Key
    token: str
    """Shown this once: only its hash is kept."""


def _key(record: Record, used: TimestampMs | None = None) -> Key:
    body = record.body
    return Key(
        id=record.id,
        name=body["name"],
        kind=body["kind"],
        person=body["personId"],
        agent=body["agentId"],
        workspace=body["workspace"],
        scopes=None if body["scopes"] is None else tuple(body["scopes"]),
        prefix=body["prefix"],
        created_at=when(record.created_at),
        expires_at=when(body["expires"]) if body["expires"] else None,
        last_used_at=None if used is None else when(used),
    )


class Keys(Resource):
    async def create(  # noqa: PLR0913 - what a key may be, by name
        self,
        name: str,
        kind: str = CredentialKind.SERVICE,
        *,
        person: str | None = None,
        agent: str | None = None,
        workspace: str | None = None,
        scopes: Iterable[str] | None = None,
        expires_at: datetime | None = None,
    ) -> NewKey:
        """A key for a service, a person or an agent, perhaps confined to one workspace."""
        asked = None if scopes is None else [one_of(Permission, s, "scope") for s in scopes]
        holding = KeySpec(
            name=name,
            kind=one_of(CredentialKind, kind, "kind of key"),
            person=person,
            agent=agent,
            workspace=workspace,
            scopes=None if asked is None else frozenset(asked),
            expires=None if expires_at is None else milliseconds(expires_at),
        )
        issued = await keys.create(self._ports, self._actor, holding)
        return NewKey(_key(issued.key), issued.token)

    async def get(self, id: str) -> Key:
        record = await keys.get(self._ports, self._actor, id)
        [used] = await keys.last_used(self._ports, (record,))
        return _key(record, used)

    async def list(self) -> tuple[Key, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await keys.listing(self._ports, self._actor, cursor=cursor, limit=limit)

        records = tuple(await every(page))
        used = await keys.last_used(self._ports, records)
        return tuple(map(_key, records, used))

    async def revoke(self, id: str) -> None:
        """From the next request on it opens nothing."""
        await keys.revoke(self._ports, self._actor, id)
