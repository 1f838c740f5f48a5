"""Tenants and people of the action tests, and races between calls."""

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


async def create_tenant(ports: Ports, slug: str = "acme") -> tuple[tenants.NewTenant, Actor]:
    """Create a tenant; return it and its owner as a caller."""
    created = await tenants.create(ports, slug, slug.title(), "Ada", f"ada@{slug}.example")
    return created, await credentials.authenticate(ports, created.token)


async def add_person(
    ports: Ports, owner: Actor, name: str, role: Role = Role.MEMBER
) -> tuple[Record, Actor]:
    """Create a person in a tenant; return the record and the person as a caller."""
    profile = PersonRecord(name.title(), f"{name}@example.org", role)
    person = await people.create(ports, owner, profile)
    issued = await keys.create(
        ports, owner, KeySpec(f"{name}'s", CredentialKind.PERSON, person=person.id)
    )
    return person, await credentials.authenticate(ports, issued.token)


async def race(*attempts: Awaitable[Any]) -> tuple[list[Any], list[BaseException]]:
    """Run calls concurrently; return the results and the errors."""
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    lost = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)], lost


async def start_after_yields(turns: int, attempt: Awaitable[Any]) -> Any:
    """Start after this many loop iterations, so that races meet at every point."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return await attempt
