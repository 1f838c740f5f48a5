"""One key for one store: every process must seal with the same."""

from __future__ import annotations

from typing import Final

from carrel.core.store.record import RecordChange, RecordType
from carrel.core.store.tree import Commit
from carrel.ports import Ports

_NOBODY: Final = "*"
_ID: Final = "key"


async def verify_vault_key(ports: Ports) -> bool:
    """Whether this vault's key is the store's; the first to ask decides which that is."""
    ours = ports.vault.fingerprint()
    if (noted := await known(ports)) is None:
        change = RecordChange(_NOBODY, RecordType.VAULT, _ID, {"fingerprint": ours}, expected=0)
        reason = "note which key seals secrets"
        await ports.trees.commit(
            [Commit((), "carrel", reason, ports.clock.now(), changes=(change,))]
        )
        noted = await known(ports)
    return noted == ours


async def known(ports: Ports) -> str | None:
    """The fingerprint of the key that this store is sealed with, None before the first."""
    [record] = await ports.records.get(_NOBODY, RecordType.VAULT, [_ID])
    return str(record.body["fingerprint"]) if record else None
