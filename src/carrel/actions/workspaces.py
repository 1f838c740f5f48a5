"""Shared workspaces: files under an id of their own, which agents reach by their config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.actions import accounts
from carrel.actions.accounts import Book
from carrel.actions.records import Drafts, commit_changes, insist
from carrel.actions.rules import rules_of
from carrel.core.access import Actor
from carrel.core.demands import merged
from carrel.core.names import Kind, Scope
from carrel.core.record import Change, Noun, Record
from carrel.core.tree import ReceiptKey, Write
from carrel.core.workspace_record import checked
from carrel.ports import World


async def get(world: World, actor: Actor, id: str) -> Record:
    return await accounts.get(world, actor, BOOK, id)


async def listing(world: World, actor: Actor) -> list[Record]:
    return await accounts.listing(world, actor, BOOK)


async def create(
    world: World, actor: Actor, given: Mapping[str, Any], receipt: ReceiptKey | None = None
) -> Record:
    """Raises Malformed."""
    return await accounts.create(world, actor, BOOK, given, receipt)


async def patch(
    world: World,
    actor: Actor,
    id: str,
    given: Mapping[str, Any],
    receipt: ReceiptKey | None = None,
) -> Record:
    """Merge what is given into what is there. Raises Missing and Malformed."""
    return await accounts.patch(world, actor, BOOK, id, given, receipt)


async def delete(world: World, actor: Actor, id: str, receipt: ReceiptKey | None = None) -> None:
    """Remove a workspace and, in the same commit, every file in it. Raises Missing.

    A removal is a version like any other, so what runs have frozen of it stays as it was. Agents
    that refer to it fail when they use it, and say so.
    """

    async def attempt() -> None:
        was = await get(world, actor, id)
        scope = Scope(was.tenant, Kind.WORKSPACE, was.id)
        rules = await rules_of(world, was.tenant)
        [tree] = await world.trees.read([scope])
        await commit_changes(
            world,
            actor.name,
            "delete a workspace",
            [Change(was.tenant, was.noun, was.id, None, was.revision)],
            receipt=receipt,
            drafts=Drafts(tuple(Write(scope, path, None) for path in tree.heads)),
            keep=rules.policy.shared_limits.max_versions,
        )

    await insist(attempt)


async def _settle(
    world: World,
    tenant: str,
    id: str,
    patch: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Mapping[str, Any]:
    return checked(merged(stored, patch))


BOOK: Final = Book(Noun.WORKSPACE, "ws", _settle)
