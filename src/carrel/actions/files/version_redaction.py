"""Removes the content of stored versions; numbers, authors and times stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.blob_contents import load_contents
from carrel.actions.deleted_bytes import remove_deleted_bytes
from carrel.actions.idempotency import redact_responses
from carrel.actions.overlay.stack_versions import load_versioned_path
from carrel.actions.records import commit_changes
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, TimestampMs
from carrel.core.overlay.agent_resolution import is_pin
from carrel.core.store.commit import Applied, Commit, Expect, Write
from carrel.core.store.entry import Head, Version, version_key
from carrel.core.store.record import RecordChange, RecordType, decode_body, encode_body
from carrel.ports import Ports
from carrel.ports.erasure import VersionReplacement

MARKER: Final = b"[REDACTED]\n"
"""What the runs and pins that refer to a redacted version read."""
_KEEP_ALL_VERSIONS: Final = 2**31


class VersionRedaction(Struct, frozen=True):
    """Who redacted a version, and when."""

    by: str
    at: TimestampMs = 0


@retry_on_conflict()
async def redact_version(ports: Ports, actor: Actor, stack: Stack, path: Path, number: int) -> None:
    """Remove the content of one version of the nearest layer, and audit it.

    A current version is replaced by a new one first, whose text is the marker. Other versions and
    pins with the same content keep theirs. Repeating it changes nothing. Raises NotFound, and
    ValidationError for an inherited version or a current pin.
    """
    actor.require(Permission.TENANT_ADMIN)
    versioned = await load_versioned_path(ports, stack, path)
    stack_version = await versioned.find(number)
    if stack_version.layer != stack[0]:
        raise ValidationError(
            f"version {number} of {path} belongs to the {stack_version.layer.kind}"
        )
    version = stack_version.row
    if version.head.entry is None:
        raise NotFound(f"no such version of {path}: {number}")
    [current] = await ports.trees.read(stack[:1], (path,))
    if current.version(path) == version.head.version:
        if is_pin(version.head.entry):
            raise ValidationError("a current pin cannot be redacted; accept another version first")
        await _replace_head(ports, actor, stack[0], version)
    await redact_stored_versions(ports, stack[0], [version])
    await remove_deleted_bytes(ports)
    await _audit(ports, actor, stack[0], version.head)


async def redact_stored_versions(ports: Ports, scope: Scope, versions: Sequence[Version]) -> int:
    """Replace the contents of versions that are not current, in stored responses too, and rebuild
    git.

    The caller scrubs."""
    await _redact_responses(ports, scope, versions)
    [blob] = await ports.blobs.put([MARKER])
    replacements = [
        VersionReplacement(
            *(scope, version.head.path, version.head.version),
            replace(entry, blob=blob, base=blob if is_pin(entry) else None),
            redacted=True,
        )
        for version in versions
        if (entry := version.head.entry) is not None
    ]
    count = await ports.erasure.replace_versions(replacements, ports.clock.now())
    if ports.repositories is not None and scope.kind is ScopeKind.AGENT:
        await ports.repositories.delete(scope)
    return count


async def _redact_responses(ports: Ports, scope: Scope, versions: Sequence[Version]) -> None:
    """Remove the contents of versions that are not redacted yet from stored responses."""
    entries = [version.head.entry for version in versions if not version.redacted]
    contents = await load_contents(ports, {entry.blob for entry in entries if entry is not None})
    readable = [content for content in contents.values() if isinstance(content, bytes)]
    await redact_responses(ports, scope.tenant, readable)


async def _replace_head(ports: Ports, actor: Actor, scope: Scope, version: Version) -> None:
    [blob] = await ports.blobs.put([MARKER])
    head = version.head
    assert head.entry is not None
    commit = Commit(
        (Write(scope, head.path, replace(head.entry, blob=blob)),),
        actor.name,
        "redact a version",
        ports.clock.now(),
        expects=(Expect(scope, head.path, head.version),),
        max_versions=_KEEP_ALL_VERSIONS,
        key=actor.key_reference,
    )
    [outcome] = await ports.trees.commit([commit])
    if not isinstance(outcome, Applied):
        raise Busy.with_conflicts(str(head.path))


async def _audit(ports: Ports, actor: Actor, scope: Scope, head: Head) -> None:
    """Record who redacted the version; a repeated redaction keeps the first record."""
    subjects = (f"{scope.kind}/{scope.name}", f"version/{head.version}")
    id, reason = _redaction_id(scope, head), "redact a version"
    [existing] = await ports.records.get(scope.tenant, RecordType.REDACTION, [id])
    body = encode_body(VersionRedaction(by=actor.name))
    change = RecordChange(scope.tenant, RecordType.REDACTION, id, body)
    changes = [change] if existing is None else []
    await commit_changes(
        ports, actor, reason, changes, audit_subjects=subjects, tenant=actor.tenant
    )


async def load_redactions(
    ports: Ports, scope: Scope, heads: Sequence[Head]
) -> Mapping[str, VersionRedaction]:
    """Return who redacted versions, by version key; one of a purge has no record."""
    ids = [_redaction_id(scope, head) for head in heads]
    records = await ports.records.get(scope.tenant, RecordType.REDACTION, ids) if ids else ()
    return {
        version_key(scope, head): replace(
            decode_body(record, VersionRedaction), at=record.created_at
        )
        for head, record in zip(heads, records, strict=True)
        if record is not None
    }


def _redaction_id(scope: Scope, head: Head) -> str:
    return f"red_{version_key(scope, head)}"
