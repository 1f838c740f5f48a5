"""Named PostgreSQL statements: each fits the schema, and each is used."""

from __future__ import annotations

from pathlib import Path as File

import asyncpg
import pytest

from carrel.adapters.postgres import database
from carrel.adapters.postgres.database import STATEMENTS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_every_statement_prepares_against_the_migrated_schema(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    failures = {}
    for name, statement in STATEMENTS.items():
        try:
            await connection.prepare(statement)
        except asyncpg.PostgresError as error:
            failures[name] = str(error)
    with pytest.raises(asyncpg.UndefinedColumnError):
        await connection.prepare("SELECT noun FROM record")
    await connection.close()

    assert failures == {}


def test_every_statement_is_used_by_the_adapter() -> None:
    modules = File(database.__file__).parent.glob("*.py")
    code = "".join(module.read_text("utf-8") for module in modules)
    assert [name for name in STATEMENTS if f'"{name}"' not in code] == []
