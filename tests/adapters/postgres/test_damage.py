"""Damaged pages of a PostgreSQL server are corrupt content, and a check finishes on them."""

from __future__ import annotations

from pathlib import Path as File

import asyncpg
import pytest
from tests.support.full_app import FullApp, create_rest_app
from tests.support.stores import ports_over

from carrel.actions.maintenance.integrity import check_store
from carrel.adapters.postgres import open_store
from carrel.core.outages import CorruptContent

pytestmark = pytest.mark.anyio

DAMAGE = """
CREATE FUNCTION read_damaged_page() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN RAISE 'invalid page in block 0' USING ERRCODE = 'data_corrupted'; END $$;
ALTER TABLE record RENAME TO intact_record;
CREATE VIEW record AS SELECT * FROM intact_record WHERE type <> 'agent' OR read_damaged_page();
"""
"""Reading an agent fails as it does on a damaged page."""


async def damage(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(DAMAGE)
    finally:
        await connection.close()


async def test_a_damaged_page_is_corrupt_and_a_check_names_its_table(
    postgres_url: str, tmp_path: File
) -> None:
    async with open_store(postgres_url) as store:
        ports = ports_over(store, directory=tmp_path)
        owner = await FullApp(ports, create_rest_app(ports)).owner()
        agent = await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
        assert agent.status_code == 201
        await damage(postgres_url)

        answer = await owner.get("/v1/agents")

        assert (answer.status_code, answer.json()["error"]) == (500, "corrupt")
        maintenance = store.maintenance
        findings = await check_store(maintenance, None, now=ports.clock.now(), grace=0)
        subjects = {finding.subject for finding in findings.items if finding.severity == "error"}
        assert "table record" in subjects
        with pytest.raises(CorruptContent, match="a page is damaged"):
            async with maintenance.snapshot() as snapshot:
                async for _ in snapshot.rows("record"):
                    pass
