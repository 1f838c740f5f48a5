"""Uses of credentials that the audit has yet to name, collected in each server process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import TimestampMs
from carrel.core.lru_cache import LruCache
from carrel.ports.attempt_limiter import CLIENT_ADDRESS

DAY_MS: Final = 24 * 3600 * 1000
_MAX_REMEMBERED: Final = 20_000
_MAX_PENDING: Final = 5_000


class CredentialUse(Struct, frozen=True, gc=False):
    """Use of a credential from one address on one day (UTC)."""

    tenant: str
    subject: str
    """Its key, or for a sign-in code its person, as `type/id`."""
    name: str
    """Name of the key."""
    author: str
    """Holder of the key; empty if the use was refused."""
    address: str
    day: int


class CredentialUses:
    """The first use of each credential, day and address; later ones cost a look-up."""

    def __init__(self) -> None:
        self._recent_uses: LruCache[CredentialUse, bool] = LruCache(_MAX_REMEMBERED)
        self._pending: dict[CredentialUse, TimestampMs] = {}

    def add(self, tenant: str, subject: str, name: str, author: str, at: TimestampMs) -> None:
        """Remember a use of this request; calls in the same process have no address."""
        address = CLIENT_ADDRESS.get()
        if not address:
            return
        use = CredentialUse(tenant, subject, name, author, address, at // DAY_MS)
        if self._recent_uses.get(use) is None and len(self._pending) < _MAX_PENDING:
            self._recent_uses.put(use, True)
            self._pending[use] = at

    def take(self) -> list[tuple[CredentialUse, TimestampMs]]:
        """Return the uses that were not taken yet, oldest first."""
        taken = list(self._pending.items())
        self._pending.clear()
        return taken

    def restore(self, uses: Sequence[tuple[CredentialUse, TimestampMs]]) -> None:
        """Return uses that could not be stored."""
        self._pending = dict(uses) | self._pending
