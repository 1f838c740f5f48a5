"""Tenants and people of the action tests, and races between calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import httpx

from carrel.actions.accounts import credentials, invitations, people, sign_in, tenants
from carrel.core.access import Actor, Role
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
    return person, await credentials.authenticate(ports, await invite(ports, owner, person.id))


async def invite(ports: Ports, owner: Actor, person: str) -> str:
    """Invite a person and exchange the code; return the token."""
    invitation = await invitations.invite(ports, owner, person)
    return (await sign_in.redeem_code(ports, invitation.code)).token


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


async def sign_in_as(owner: httpx.AsyncClient, person: str) -> str:
    """Invite a person and exchange the code; return the token."""
    invited = await owner.post(f"/v1/people/{person}/invite")
    assert invited.status_code == 201, invited.text
    signed_in = await owner.post("/v1/sign-in", json={"code": invited.json()["code"]})
    assert signed_in.status_code == 200, signed_in.text
    return str(signed_in.json()["token"])
