"""The tenants and people that the tests of actions are about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from carrel.actions.accounts import credentials, keys, people, tenants
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.accounts import PersonRecord
from carrel.core.store.record import Record
from carrel.ports import Ports


async def founded(ports: Ports, slug: str = "acme") -> tuple[tenants.NewTenant, Actor]:
    """A tenant, and its owner as a caller."""
    made = await tenants.create(ports, slug, slug.title(), "Ada", f"ada@{slug}.example")
    return made, await credentials.authenticate(ports, made.token)


async def joined(
    ports: Ports, owner: Actor, name: str, role: Role = Role.MEMBER
) -> tuple[Record, Actor]:
    """A person who joins a tenant, and as a caller."""
    profile = PersonRecord(name.title(), f"{name}@example.org", role)
    person = await people.create(ports, owner, profile)
    issued = await keys.create(
        ports, owner, KeySpec(f"{name}'s", CredentialKind.PERSON, person=person.id)
    )
    return person, await credentials.authenticate(ports, issued.token)


async def rivals(*attempts: Awaitable[Any]) -> tuple[list[Any], list[BaseException]]:
    """Let them race: what came of those that succeeded, and why the others did not."""
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    lost = [one for one in outcomes if isinstance(one, BaseException)]
    return [one for one in outcomes if not isinstance(one, BaseException)], lost


async def later(turns: int, attempt: Awaitable[Any]) -> Any:
    """Begin after others have had so many turns: over all numbers, rivals meet at every point."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return await attempt
