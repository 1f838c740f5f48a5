"""One key for one store: every process must seal with the same."""

from __future__ import annotations

from typing import Final

from carrel.core.store.record import RecordChange, RecordType
from carrel.core.store.tree import Commit
from carrel.ports import Ports

_NOBODY: Final = "*"
_ID: Final = "key"


async def verify_vault_key(world: Ports) -> bool:
    """Whether this vault's key is the store's; the first to ask decides which that is."""
    ours = world.vault.fingerprint()
    if (noted := await known(world)) is None:
        change = RecordChange(_NOBODY, RecordType.VAULT, _ID, {"fingerprint": ours}, expected=0)
        why = "note which key seals secrets"
        await world.trees.commit([Commit((), "carrel", why, world.clock.now(), changes=(change,))])
        noted = await known(world)
    return noted == ours


async def known(world: Ports) -> str | None:
    """The fingerprint of the key that this store is sealed with, None before the first."""
    [record] = await world.records.get(_NOBODY, RecordType.VAULT, [_ID])
    return str(record.body["fingerprint"]) if record else None
