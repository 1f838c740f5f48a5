"""Queue that serves tenants in turn, and each tenant's items in order of arrival."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

_MAX_IDLE_TENANTS: Final = 64


class FairQueue(Generic[Item]):
    """Items by tenant.

    Every tenant has one turn per round: while a tenant's first item waits, each other tenant is
    served once at most. A tenant that arrives takes part in the current round, unless it was served
    in it.
    """

    def __init__(self) -> None:
        self._items: dict[str, list[Item]] = {}
        self._turns: dict[str, tuple[int, int]] = {}
        """Round of each tenant's next turn, and its order within that round."""
        self._round = 0
        self._order = 0

    def __len__(self) -> int:
        return sum(map(len, self._items.values()))

    def count(self, tenant: str) -> int:
        """Number of a tenant's waiting items."""
        return len(self._items.get(tenant, ()))

    def push(self, tenant: str, item: Item) -> None:
        if tenant not in self._items:
            next_round, _ = self._turns.get(tenant, (0, 0))
            self._set_turn(tenant, max(self._round, next_round))
        self._items.setdefault(tenant, []).append(item)

    def pop(self, is_blocked: Callable[[Item], bool] = lambda _: False) -> Item | None:
        """Remove and return the next item that is not blocked; None if there is none."""
        for tenant in sorted(self._items, key=self._turns.__getitem__):
            for item in self._items[tenant]:
                if not is_blocked(item):
                    self.remove(tenant, item)
                    self._end_turn(tenant)
                    return item
        return None

    def remove(self, tenant: str, item: Item) -> None:
        """Remove a waiting item. Raises ValueError if it does not wait."""
        items = self._items.get(tenant, [])
        items.remove(item)
        if not items:
            del self._items[tenant]

    def _end_turn(self, tenant: str) -> None:
        served_round, _ = self._turns[tenant]
        self._round = max(self._round, served_round)
        self._set_turn(tenant, served_round + 1)
        if len(self._turns) > len(self._items) + _MAX_IDLE_TENANTS:
            self._turns = {
                name: turn
                for name, turn in self._turns.items()
                if name in self._items or turn[0] > self._round
            }

    def _set_turn(self, tenant: str, round: int) -> None:
        self._order += 1
        self._turns[tenant] = (round, self._order)
