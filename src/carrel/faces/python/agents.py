"""Agents, and the templates that they follow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel.actions import agents, templates
from carrel.actions.agents import NewAgent
from carrel.actions.records import Page
from carrel.core.record import Record
from carrel.faces.python.seat import Noun, every, when


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
    created_at: datetime


def _template(record: Record) -> Template:
    body = record.body
    return Template(record.id, body["slug"], body["name"], when(record.created))


def _agent(record: Record) -> Agent:
    body = record.body
    return Agent(record.id, body["slug"], body["name"], body["templateId"], when(record.created))


class Templates(Noun):
    async def create(self, slug: str, name: str = "") -> Template:
        """Raises Taken where another has the slug."""
        return _template(await templates.create(self._world, self._actor, slug, name or slug))

    async def get(self, name: str) -> Template:
        """By id or slug."""
        return _template(await templates.get(self._world, self._actor, name))

    async def list(self) -> tuple[Template, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await templates.listing(self._world, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_template, await every(page)))

    async def delete(self, name: str) -> None:
        """Raises Taken where agents follow it."""
        await templates.delete(self._world, self._actor, name)


class Agents(Noun):
    async def create(self, slug: str, name: str = "", *, template: str | None = None) -> Agent:
        """Raises Taken where another has the slug, Missing where there is no such template."""
        new = NewAgent(slug, name or slug, template)
        return _agent(await agents.create(self._world, self._actor, new))

    async def get(self, name: str) -> Agent:
        """By id or slug."""
        return _agent(await agents.get(self._world, self._actor, name))

    async def list(self) -> tuple[Agent, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await agents.listing(self._world, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_agent, await every(page)))

    async def delete(self, name: str) -> None:
        """Remove an agent and the keys that are bound to it."""
        await agents.delete(self._world, self._actor, name)
