"""Agents, and the templates that they follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.records import Page
from carrel.core.agents.agent import agent_fields
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, every, only, when


class Named(TypedDict, total=False):
    slug: str
    name: str


class Facts(TypedDict, total=False):
    human: str | None
    is_shared: bool
    owner: str | None
    config: Mapping[str, Any] | None


class Fields(Named, Facts, total=False):
    template: str | None


_WIRE: Final = {
    **{"slug": "slug", "name": "name", "template": "templateId", "human": "humanPairId"},
    **{"is_shared": "isShared", "owner": "ownerId", "config": "config"},
}


@dataclass(frozen=True, slots=True)
class Template:
    id: str
    slug: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    id: str
    slug: str
    name: str
    template: str | None
    """The id of the template that it follows."""
    human: str | None
    """The id of the person whom it works for."""
    is_shared: bool
    owner: str | None
    config: Mapping[str, Any]
    created_at: datetime


def _template(record: Record) -> Template:
    body = record.body
    return Template(record.id, body["slug"], body["name"], when(record.created_at))


def _agent(record: Record) -> Agent:
    known = agent_fields(record)
    return Agent(
        id=record.id,
        slug=known["slug"],
        name=known["name"],
        template=known["templateId"],
        human=known["humanPairId"],
        is_shared=known["isShared"],
        owner=known["ownerId"],
        config=known["config"],
        created_at=when(record.created_at),
    )


class Templates(Resource):
    async def create(self, slug: str, name: str = "") -> Template:
        """Raises Taken where another has the slug."""
        return _template(await templates.create(self._ports, self._actor, slug, name or slug))

    async def get(self, name: str) -> Template:
        """By id or slug."""
        return _template(await templates.get(self._ports, self._actor, name))

    async def list(self) -> tuple[Template, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await templates.listing(self._ports, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_template, await every(page)))

    async def change(self, which: str, /, **fields: Unpack[Named]) -> Template:
        """Give one, by id or slug, another slug or name; agents go on following it."""
        given = only(fields, Named)
        return _template(await templates.patch(self._ports, self._actor, which, given))

    async def delete(self, name: str) -> None:
        """Raises Taken where agents follow it."""
        await templates.delete(self._ports, self._actor, name)


class Agents(Resource):
    async def create(
        self, slug: str, name: str = "", *, template: str | None = None, **more: Unpack[Facts]
    ) -> Agent:
        """Pinned files are held as they are now. Raises Taken where another has the slug.

        Raises Missing where there is no such template or person.
        """
        new = NewAgent(slug, name or slug, template, **more)
        return _agent(await agents.create(self._ports, self._actor, new))

    async def get(self, name: str) -> Agent:
        """By id or slug."""
        return _agent(await agents.get(self._ports, self._actor, name))

    async def list(self) -> tuple[Agent, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await agents.listing(self._ports, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_agent, await every(page)))

    async def change(self, which: str, /, **fields: Unpack[Fields]) -> Agent:
        """Change what is named, and with it the files that follow from it; None clears."""
        given = {_WIRE[field]: value for field, value in only(fields, Fields).items()}
        return _agent(await agents.patch(self._ports, self._actor, which, given))

    async def delete(self, name: str) -> None:
        """Remove an agent and the keys that are bound to it."""
        await agents.delete(self._ports, self._actor, name)
