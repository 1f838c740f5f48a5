"""Shared workspaces: files under an id of their own, which agents reach by their config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.actions.policy.tenant_rules import rules_of
from carrel.actions.records import Drafts, commit_changes, insist
from carrel.actions.sandbox import account_records as accounts
from carrel.actions.sandbox import release as releases
from carrel.actions.sandbox.account_records import Book
from carrel.core.access import Actor
from carrel.core.field_validation import merged
from carrel.core.identifiers import Kind, Scope
from carrel.core.sandbox.workspace_config import checked
from carrel.core.store.record import Change, Noun, Record
from carrel.core.store.tree import ReceiptKey, Write
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
    that refer to it fail when they use it, and say so. Instances that are kept for it are let go.
    """

    rules = await rules_of(world, actor.tenant)
    keep = rules.policy.shared_limits.max_versions

    async def attempt() -> Scope:
        was = await get(world, actor, id)
        scope = Scope(was.tenant, Kind.WORKSPACE, was.id)
        gone = Change(was.tenant, was.noun, was.id, None, was.revision)
        drafts = await _removal(world, scope)
        why = "delete a workspace"
        await commit_changes(
            world, actor.name, why, [gone], receipt=receipt, drafts=drafts, keep=keep
        )
        return scope

    scope = await insist(attempt)
    await releases.of_workspace(world, scope.tenant, scope.name)
    late = await _removal(world, scope)  # written between the look and the commit: the last ones
    if late.writes:
        why = "delete a workspace: what was written meanwhile"
        await commit_changes(world, actor.name, why, [], drafts=late, keep=keep)


async def _removal(world: World, scope: Scope) -> Drafts:
    [tree] = await world.trees.read([scope])
    return Drafts(tuple(Write(scope, path, None) for path in tree.heads))


async def _settle(
    world: World,
    tenant: str,
    id: str,
    patch: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Mapping[str, Any]:
    return checked(merged(stored, patch))


BOOK: Final = Book(Noun.WORKSPACE, "ws", _settle)
_PREFIX: Final = f"{BOOK.prefix}_"
