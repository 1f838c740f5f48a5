"""Tallies in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.writer import Writer
from carrel.core.fleet.tallies import Tally, TallyKind, WrongTally


class SqliteTallies:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def of_names(
        self, tenant: str, kind: TallyKind, names: Sequence[str]
    ) -> tuple[Tally, ...]:
        return await self._read("tallies_of_names", tenant, kind, json.dumps(list(names)))

    async def since(self, tenant: str, kind: TallyKind, name: str = "") -> tuple[Tally, ...]:
        return await self._read("tallies_since", tenant, kind, name)

    async def of_agents(
        self, tenant: str, kind: TallyKind, agents: Sequence[str], name: str = ""
    ) -> tuple[Tally, ...]:
        ids = json.dumps(list(agents))
        return await self._read("tallies_of_agents", tenant, kind, ids, name)

    async def total_before(self, tenant: str, kind: TallyKind, name: str) -> int:
        parameters = (tenant, kind, name)
        [total] = self._reader.db.execute(STATEMENTS["tally_total"], parameters).fetchone()
        return int(total)

    async def find_wrong(self, limit: int = 100) -> tuple[WrongTally, ...]:
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["wrong_tallies"], (limit,)).fetchall()
        )
        return tuple(WrongTally(*row) for row in rows)

    async def rebuild(self) -> int:
        def rebuild(db: sqlite3.Connection, _: object) -> int:
            db.execute(STATEMENTS["delete_tallies"])
            return db.execute(STATEMENTS["rebuild_tallies"]).rowcount

        return await self._writer.submit(rebuild, is_long=True)

    async def _read(self, statement: str, *parameters: Any) -> tuple[Tally, ...]:
        rows = self._reader.db.execute(STATEMENTS[statement], parameters).fetchall()
        return tuple(Tally(*row) for row in rows)
