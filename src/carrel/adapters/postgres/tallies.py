"""Tallies in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.adapters.postgres.database import STATEMENTS, Database
from carrel.core.fleet.tallies import Tally, TallyKind, WrongTally


class PostgresTallies:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_names(
        self, tenant: str, kind: TallyKind, names: Sequence[str]
    ) -> tuple[Tally, ...]:
        rows = await self._database.rows("tallies_of_names", tenant, kind, list(names))
        return tuple(Tally(*row) for row in rows)

    async def since(self, tenant: str, kind: TallyKind, name: str = "") -> tuple[Tally, ...]:
        rows = await self._database.rows("tallies_since", tenant, kind, name)
        return tuple(Tally(*row) for row in rows)

    async def of_agents(
        self, tenant: str, kind: TallyKind, agents: Sequence[str], name: str = ""
    ) -> tuple[Tally, ...]:
        ids = list(agents)
        rows = await self._database.rows("tallies_of_agents", tenant, kind, ids, name)
        return tuple(Tally(*row) for row in rows)

    async def total_before(self, tenant: str, kind: TallyKind, name: str) -> int:
        return int(await self._database.value("tally_total", tenant, kind, name))

    async def find_wrong(self, limit: int = 100) -> tuple[WrongTally, ...]:
        rows = await self._database.rows("wrong_tallies", limit)
        return tuple(WrongTally(*row) for row in rows)

    async def rebuild(self) -> int:
        async with self._database.transaction() as connection:
            await connection.execute(STATEMENTS["lock_tallies"])
            await connection.execute(STATEMENTS["delete_tallies"])
            status = await connection.execute(STATEMENTS["rebuild_tallies"])
            return int(status.rpartition(" ")[2])
