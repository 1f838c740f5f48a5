"""Audit of the use of credentials: one entry for each, its address and day.

A request writes nothing: a server stores the first uses of a day together, after some seconds. They
are lost if it is killed before, and of two replicas that store at once both may name one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carrel.core.access import PLATFORM
from carrel.core.identifiers import TimestampMs
from carrel.core.store.audit_filter import AuditFilter
from carrel.core.store.commit import Commit
from carrel.core.store.record import KeyReference
from carrel.ports import Ports
from carrel.ports.credential_uses import DAY_MS, CredentialUse

USE_ACTION: Final = "use a key"
REFUSED_ACTION: Final = "refuse a sign-in"
_BATCH_SIZE: Final = 200
_MAX_ADDRESSES: Final = 200
"""Entries of a credential and a day that are compared; later addresses may be named again."""


async def store_credential_uses(ports: Ports) -> None:
    """Store the uses of credentials since the last call; after an error they remain."""
    uses = ports.credential_uses.take()
    try:
        for start in range(0, len(uses), _BATCH_SIZE):
            await _store(ports, uses[start : start + _BATCH_SIZE])
    except BaseException:
        ports.credential_uses.restore(uses)
        raise


async def _store(ports: Ports, uses: Sequence[tuple[CredentialUse, TimestampMs]]) -> None:
    commits = [_to_commit(use, at) for use, at in uses if not await _is_stored(ports, use)]
    if commits:
        await ports.trees.commit(commits)


async def _is_stored(ports: Ports, use: CredentialUse) -> bool:
    start = use.day * DAY_MS
    filter = AuditFilter(action=_action(use), object=use.subject, start=start, end=start + DAY_MS)
    entries = await ports.records.audit(use.tenant, filter, limit=_MAX_ADDRESSES)
    return any(entry.reason == _reason(use) for entry in entries)


def _to_commit(use: CredentialUse, at: TimestampMs) -> Commit:
    _, _, id = use.subject.partition("/")
    return Commit(
        (),
        use.author or PLATFORM.name,
        _reason(use),
        at,
        action=_action(use),
        audit_subjects=(use.subject,),
        audited_tenant=use.tenant,
        key=KeyReference(id, use.name) if use.author else None,
    )


def _action(use: CredentialUse) -> str:
    return USE_ACTION if use.author else REFUSED_ACTION


def _reason(use: CredentialUse) -> str:
    if use.author:
        return f"first use of the key on this day from {use.address}"
    return f"refused an expired credential from {use.address}"
