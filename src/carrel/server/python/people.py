"""The people of a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict, Unpack

from carrel.actions.accounts import people
from carrel.actions.accounts.people import Profile
from carrel.actions.records import Page
from carrel.core.access import Role
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, every, one_of, only, when


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    email: str
    role: str
    title: str | None
    timezone: str | None
    pronouns: str | None
    created_at: datetime


class Profiled(TypedDict, total=False):
    title: str | None
    timezone: str | None
    pronouns: str | None


class Fields(Profiled, total=False):
    name: str
    email: str
    role: str


def _person(record: Record) -> Person:
    body = record.body
    return Person(
        id=record.id,
        name=body["name"],
        email=body["email"],
        role=body["role"],
        title=body["title"],
        timezone=body["timezone"],
        pronouns=body["pronouns"],
        created_at=when(record.created_at),
    )


class People(Resource):
    async def create(
        self, name: str, email: str, role: str = Role.MEMBER, **profile: Unpack[Profiled]
    ) -> Person:
        """Raises Taken where another has the address."""
        new = Profile(name, email, one_of(Role, role, "role"), **profile)
        return _person(await people.create(self._ports, self._actor, new))

    async def get(self, id: str) -> Person:
        return _person(await people.get(self._ports, self._actor, id))

    async def list(self) -> tuple[Person, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await people.listing(self._ports, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_person, await every(page)))

    async def change(self, id: str, **fields: Unpack[Fields]) -> Person:
        """Change what is named; None clears what may be absent. The last owner stays one."""
        given = only(fields, Fields)
        if "role" in given:
            given["role"] = one_of(Role, given["role"], "role")
        return _person(await people.patch(self._ports, self._actor, id, given))

    async def delete(self, id: str) -> None:
        """Remove a person and every key they hold."""
        await people.delete(self._ports, self._actor, id)
