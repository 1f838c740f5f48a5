"""Tallies: counts over a tenant that cost the same at any number of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from carrel.core.fleet.tallies import Tally, TallyKind, WrongTally


class Tallies(Protocol):
    """Counts that change in the transaction of what they count."""

    async def of_names(
        self, tenant: str, kind: TallyKind, names: Sequence[str]
    ) -> tuple[Tally, ...]:
        """Return the tallies with these names, in no order."""

    async def since(self, tenant: str, kind: TallyKind, name: str = "") -> tuple[Tally, ...]:
        """Return the tallies whose name is not before `name`, in no order."""

    async def of_agents(
        self, tenant: str, kind: TallyKind, agents: Sequence[str], name: str = ""
    ) -> tuple[Tally, ...]:
        """Count the runs, prompts, memories or promotions of these agents, as `since` does.

        Reads all of them, so it is for the agents of one person.
        """

    async def total_before(self, tenant: str, kind: TallyKind, name: str) -> int:
        """Return the sum of the tallies whose name is before `name`."""

    async def find_wrong(self, limit: int = 100) -> tuple[WrongTally, ...]:
        """Count everything and return the tallies of all tenants that differ."""

    async def rebuild(self) -> int:
        """Count everything again, and return the number of tallies."""
