"""Working on the files of a shared workspace: reading, writing, editing, finding.

All of it is done on the store. Links are told as what they are, and never followed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions, WriteResult
from carrel.actions.local_locks import local_lock
from carrel.actions.policy.tenant_rules import cached_rules, load_rules
from carrel.core.access import Actor
from carrel.core.errors import Busy, NotFound, ValidationError, WorkspaceConflict
from carrel.core.files import file_kinds
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.edit import WriteCondition
from carrel.core.sandbox.file_tools import beneath, matcher, replaced
from carrel.core.store.tree import Entry, Head
from carrel.ports import Ports

_ATTEMPTS: Final = 10


class WorkspaceFiles(Struct, frozen=True):
    """One shared workspace, and who works there for what."""

    ports: Ports
    actor: Actor
    workspace: str
    run: str | None = None
    call: str | None = None
    """What the caller knows this piece of work by."""
    name: str | None = None
    """And what we do, who have many callers."""

    @property
    def scope(self) -> Scope:
        return Scope(self.actor.tenant, ScopeKind.WORKSPACE, self.workspace)

    def intent(self, verb: str, path: Path, type: str, condition: WriteCondition) -> WriteOptions:
        called = f" (call {self.call})" if self.call else ""
        return WriteOptions(condition, type, f"{verb} {path}{called}", self.run)


async def find_head(bench: WorkspaceFiles, path: Path) -> Head | None:
    [tree] = await bench.ports.trees.read((bench.scope,), (path,))
    head = tree.heads.get(path)
    return head if head and head.entry else None


async def list_heads(bench: WorkspaceFiles) -> list[Head]:
    """Every file that there is, links left out."""
    [tree] = await bench.ports.trees.read((bench.scope,))
    return [
        head
        for head in tree.heads.values()
        if head.entry and file_kinds.form_of(head.entry.type) != file_kinds.LINK
    ]


async def read_file(bench: WorkspaceFiles, path: Path) -> tuple[Head, Entry, bytes]:
    """Raises Missing, and Malformed where it is a link."""
    head = await find_head(bench, path)
    if head is None or head.entry is None:
        raise NotFound(f"file not found: {path}")
    blob = head.entry.blob
    content = (await bench.ports.blobs.get([blob]))[blob.digest]
    if file_kinds.form_of(head.entry.type) == file_kinds.LINK:
        target = content.decode(errors="replace")
        raise ValidationError(f"{path} is a link to {target}; links are not followed")
    return head, head.entry, content


async def write(bench: WorkspaceFiles, path: Path, content: bytes) -> WriteResult:
    """The whole of a file, whatever was there: of two writers the later is head."""
    head = await find_head(bench, path)
    was = head.entry.type if head and head.entry else None
    form = file_kinds.FILE if was is None else file_kinds.form_of(was)
    form = file_kinds.FILE if form == file_kinds.LINK else form
    intent = bench.intent(
        "write", path, file_kinds.type_for(form, path, content, was), WriteCondition()
    )
    return await files.put(bench.ports, (bench.scope,), path, content, bench.actor, intent)


async def edit(
    bench: WorkspaceFiles, path: Path, old: bytes, new: bytes, *, every: bool
) -> tuple[WriteResult, int]:
    """Put one text in another's place, on the very version that was looked at.

    Where somebody else was quicker it is looked at again, so that two edits of different places
    both land. Those of this process take turns: of many who try again together most would never
    come to it.
    """
    async with local_lock(id(bench.ports.trees), bench.scope, path):
        return await _edit(bench, path, old, new, every=every)


async def _edit(
    bench: WorkspaceFiles, path: Path, old: bytes, new: bytes, *, every: bool
) -> tuple[WriteResult, int]:
    ports, tenant = bench.ports, bench.actor.tenant
    policy = (cached_rules(ports, tenant) or await load_rules(ports, tenant)).policy
    admit = policy.limits_of(bench.scope).admit
    for _ in range(_ATTEMPTS):
        head, entry, content = await read_file(bench, path)
        after, count = replaced(content, old, new, every=every, name=path.text, admit=admit)
        type = file_kinds.type_for(file_kinds.form_of(entry.type), path, after, entry.type)
        seen = WriteCondition(frozenset([f'"v{head.version}"']))
        intent = bench.intent("edit", path, type, seen)
        stack = (bench.scope,)
        try:
            return await files.put(bench.ports, stack, path, after, bench.actor, intent), count
        except WorkspaceConflict:
            continue
    raise Busy(f"{path} is being written by many others")


async def glob_files(bench: WorkspaceFiles, pattern: str, root: str) -> list[str]:
    """The files beneath a directory that fit a glob, as called from there, newest first."""
    fits = matcher(pattern)
    called = [(head, beneath(root, head.path)) for head in await list_heads(bench)]
    found = [(-head.at, name) for head, name in called if name and fits.fullmatch(name.encode())]
    return [name for _, name in sorted(found)]
