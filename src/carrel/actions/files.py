"""Reading and writing the files of a workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.rules import Rules, rules_lately, rules_of
from carrel.core import edit
from carrel.core.access import Actor
from carrel.core.compose import (
    File,
    Workspace,
    compose,
    file_etag,
    resolve,
    revisions_etag,
)
from carrel.core.edit import UNCONDITIONAL, Condition, Edit
from carrel.core.errors import Busy, Malformed, Missing, Refusal, Taken, TooLarge
from carrel.core.names import Path, Stack
from carrel.core.redaction import Redacted
from carrel.core.run import Status
from carrel.core.tree import (
    MARKDOWN,
    Applied,
    Commit,
    Conflict,
    Full,
    Head,
    ReceiptKey,
)
from carrel.ports import World

_ATTEMPTS: Final = 10
_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(;[ -~]{0,96})?")


class Written(Struct, frozen=True, gc=False):
    """A file as it was stored, which is what its sender is shown."""

    file: File
    content: bytes
    redacted: Redacted


class Intent(Struct, frozen=True, gc=False):
    """What a writer may say beside the content."""

    condition: Condition = UNCONDITIONAL
    type: str | None = None
    why: str = ""
    run: str | None = None
    receipt: ReceiptKey | None = None


PLAIN: Final = Intent()


async def look(world: World, stack: Stack, path: Path) -> File:
    """What the workspace shows at a path, without its content. Raises Missing."""
    file = resolve(path, await world.trees.read(stack, (path,)))
    if file is None:
        raise Missing(f"there is no {path}")
    return file


async def content(world: World, file: File) -> bytes:
    return (await world.blobs.get([file.blob]))[file.blob.digest]


async def contents(world: World, workspace: Workspace) -> Mapping[Path, bytes]:
    """The bytes of every file, in one batch."""
    blobs = await world.blobs.get([file.blob for file in workspace.files.values()])
    return {path: blobs[file.blob.digest] for path, file in workspace.files.items()}


async def version(world: World, stack: Stack, path: Path, number: int) -> tuple[File, bytes]:
    """One version of what the nearest layer said. Raises Missing, for a tombstone too."""
    [found] = await world.trees.versions([(stack[0], path, number)])
    if found is None or found.head.entry is None:
        raise Missing(f"there is no version {number} of {path}")
    blob = found.head.entry.blob
    return _file(stack, found.head), (await world.blobs.get([blob]))[blob.digest]


async def etag(world: World, stack: Stack, *more: str) -> str:
    """What a listing is known by: it changes when anything in any layer does."""
    revisions = await world.trees.revisions(stack)
    return revisions_etag(zip(stack, revisions, strict=True), *more)


async def listing(world: World, stack: Stack, prefix: str = "") -> Workspace:
    return compose(await world.trees.read(stack, prefix=prefix))


async def put(
    world: World, stack: Stack, path: Path, content: bytes, actor: Actor, intent: Intent = PLAIN
) -> Written:
    """Write one file at the nearest layer. Raises Stale, TooLarge, Malformed or Busy."""
    if intent.type is not None and not _TYPE.fullmatch(intent.type):
        raise Malformed("contentType is not a media type")
    await _in_run(world, stack, actor, intent)
    type = intent.type or MARKDOWN
    rules = await rules_lately(world, actor.tenant)
    for attempt in range(_ATTEMPTS):
        try:
            redacted = _admitted(rules, stack, path, content)
        except Refusal:
            rules = await rules_of(world, actor.tenant)
            redacted = _admitted(rules, stack, path, content)
        [blob] = await world.blobs.put([redacted.content])
        decided = None
        if len(stack) == 1 and not attempt:
            decided = edit.put_unseen(stack[0], path, blob, intent.condition, type)
        if decided is None:
            layers = await world.trees.read(stack, (path,))
            decided = edit.put(layers, path, blob, intent.condition, type)
        head = await _commit(world, rules, decided, actor, intent, f"put {path.text}")
        if head is not None:
            return Written(_file(stack, head), redacted.content, redacted)
        rules = await rules_of(world, actor.tenant)
    raise Busy(f"{path} is being written by many others")


async def delete(
    world: World, stack: Stack, path: Path, actor: Actor, intent: Intent = PLAIN
) -> Head:
    """Remove one file from the nearest layer. Raises Missing, Stale or Busy."""
    await _in_run(world, stack, actor, intent)
    for _ in range(_ATTEMPTS):
        rules = await rules_of(world, actor.tenant)
        layers = await world.trees.read(stack, (path,))
        decided = edit.delete(layers, path, intent.condition)
        head = await _commit(world, rules, decided, actor, intent, f"delete {path}")
        if head is not None:
            return head
    raise Busy(f"{path} is being written by many others")


async def restore(
    world: World, stack: Stack, path: Path, number: int, actor: Actor, intent: Intent = PLAIN
) -> Written:
    """Make an earlier version the newest again: a new version with the old content."""
    file, content = await version(world, stack, path, number)
    why = intent.why or f"restore {path} to version {number}"
    again = replace(intent, type=file.entry.type, why=why)
    return await put(world, stack, path, content, actor, again)


async def _commit(
    world: World, rules: Rules, decided: Edit, actor: Actor, intent: Intent, why: str
) -> Head | None:
    """The head that the edit became, or None when it must be decided again."""
    scope = decided.write.scope
    limits = rules.policy.limits_of(scope)
    reason = rules.redactor.redact(intent.why.encode()).content.decode() if intent.why else why
    commit = Commit(
        writes=(decided.write,),
        by=actor.name,
        why=reason,
        at=world.clock.now(),
        expects=decided.expects,
        shelves=rules.shelves,
        quotas=(limits.quota(scope),) if decided.write.entry else (),
        keep=limits.max_versions,
        run=intent.run,
        receipt=intent.receipt,
    )
    [outcome] = await world.trees.commit([commit])
    match outcome:
        case Applied(heads):
            return heads[0]
        case Full():
            raise _too_full(outcome)
        case Conflict():
            return None


def _too_full(full: Full) -> TooLarge:
    if full.files > full.quota.files:
        limit = full.quota.files
        return TooLarge(f"the workspace may have {limit} files", maxFiles=limit)
    limit = full.quota.size or 0
    return TooLarge(f"the workspace may have {limit} bytes", maxBytes=limit)


def _admitted(rules: Rules, stack: Stack, path: Path, content: bytes) -> Redacted:
    """What may be stored of it. Raises TooLarge or Malformed."""
    rules.policy.limits_of(stack[0]).admit(len(content))
    if rules.redactor.finds_in(path.text):
        raise Malformed("the path holds a secret")
    return rules.redactor.redact(content)


async def _in_run(world: World, stack: Stack, actor: Actor, intent: Intent) -> None:
    """A write may name the run it belongs to: one of this workspace that has not ended."""
    if intent.run is None:
        return
    [run] = await world.runs.get(actor.tenant, [intent.run])
    if run is None or run.scope != stack[0]:
        raise Missing(f"there is no run {intent.run}")
    if run.status is not Status.RUNNING:
        raise Taken(f"the run has {run.status}", status=run.status)


def _file(stack: Stack, head: Head) -> File:
    assert head.entry
    tag = file_etag(head.version, stack[0], alone=len(stack) == 1)
    return File(head, head.entry, stack[0], 0, tag)
