"""Agents that write and read shared items."""

from __future__ import annotations

from dataclasses import replace

from carrel.actions import items
from carrel.actions.accounts import credentials, keys
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.core.access import Actor, CredentialKind
from carrel.core.store.record import Record
from carrel.ports import Ports


async def create_agent(ports: Ports, author: Actor, slug: str, /, **fields: object) -> Record:
    new = replace(NewAgent(slug, slug), **fields)  # type: ignore[arg-type]
    return await agents.create(ports, author, new)


async def actor_of_agent(ports: Ports, owner: Actor, agent: Record) -> Actor:
    """The actor of an agent's own key."""
    issued = await keys.create(ports, owner, KeySpec("own", CredentialKind.AGENT, agent=agent.id))
    return await credentials.authenticate(ports, issued.token)


async def read_items(ports: Ports, actor: Actor, agent: str) -> dict[str, str]:
    rows = (await items.list_items(ports, actor, agent)).items
    return {
        row.item.key: (await items.get(ports, actor, agent, row.item.key)).value for row in rows
    }
