"""Check that every process seals with the same vault key."""

from __future__ import annotations

from typing import Final

from carrel.core.accounts import VaultRecord
from carrel.core.store.commit import Commit
from carrel.core.store.record import RecordChange, RecordType, decode_body, encode_body
from carrel.ports import Ports

_GLOBAL_TENANT: Final = "*"
_RECORD_ID: Final = "key"


async def verify_vault_key(ports: Ports) -> bool:
    """Return whether this vault's key is the store's; the first caller sets it."""
    fingerprint = ports.vault.fingerprint()
    if (stored := await load_fingerprint(ports)) is None:
        body = encode_body(VaultRecord(fingerprint))
        change = RecordChange(_GLOBAL_TENANT, RecordType.VAULT, _RECORD_ID, body, expected=0)
        reason = "record the vault key's fingerprint"
        await ports.trees.commit(
            [Commit((), "carrel", reason, ports.clock.now(), changes=(change,))]
        )
        stored = await load_fingerprint(ports)
    return stored == fingerprint


async def load_fingerprint(ports: Ports) -> str | None:
    """Load the fingerprint of the store's vault key; None if not yet recorded."""
    [record] = await ports.records.get(_GLOBAL_TENANT, RecordType.VAULT, [_RECORD_ID])
    return decode_body(record, VaultRecord).fingerprint if record else None
