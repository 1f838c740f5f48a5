"""A damaged database is reported with the names of what is lost; the rest stays readable."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path as File

import pytest
from click.testing import CliRunner, Result
from tests.support.full_app import FILES, open_configured_app, settings_in

from carrel.actions.accounts import tenants
from carrel.cli import main

PAGE_BYTES = 4096
NAMES = [f"file-{number:02}.md" for number in range(12)]


def content_of(name: str) -> str:
    return f"{name} " * 1500


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[File, str]:
    """A data directory with twelve files of several pages, and the owner's token."""
    directory = tmp_path_factory.mktemp("intact") / "data"

    async def create() -> str:
        async with open_configured_app(settings_in(directory)) as app:
            created = await tenants.create(app.ports, "acme", "Acme", "Ada", "ada@acme.example")
            async with app.as_(created.token) as owner:
                for name in NAMES:
                    answer = await owner.put(f"{FILES}/{name}", json={"content": content_of(name)})
                    assert answer.status_code == 200
            return created.token

    return directory, asyncio.run(create())


@pytest.fixture
def data(intact: tuple[File, str], tmp_path: File) -> File:
    return File(shutil.copytree(intact[0], tmp_path / "data"))


def overwrite_page(database: File, number: int) -> None:
    with open(database, "r+b") as file:
        file.seek(number * PAGE_BYTES)
        file.write(b"\xff" * PAGE_BYTES)


def page_inside(database: File, name: str) -> int:
    """Number of a page in the middle of a file's content."""
    return (database.read_bytes().index((f"{name} " * 100).encode()) + 6000) // PAGE_BYTES


def carrel(data: File, *arguments: str) -> Result:
    result = CliRunner().invoke(main, [*arguments, "--data", str(data)])
    if not (result.exception is None or isinstance(result.exception, SystemExit)):
        raise result.exception
    return result


def test_a_damaged_file_is_corrupt_by_name_and_can_be_replaced(
    data: File, intact: tuple[File, str]
) -> None:
    overwrite_page(data / "carrel.db", page_inside(data / "carrel.db", NAMES[5]))

    async def scenario() -> None:
        async with (
            open_configured_app(settings_in(data)) as app,
            app.as_(intact[1]) as owner,
        ):
            damaged = await owner.get(f"{FILES}/{NAMES[5]}")
            assert (damaged.status_code, damaged.json()["error"]) == (500, "corrupt")
            assert NAMES[5] in damaged.json()["message"]
            for name in NAMES[:5] + NAMES[6:]:
                assert (await owner.get(f"{FILES}/{name}")).json()["content"] == content_of(name)
            replaced = await owner.put(f"{FILES}/{NAMES[5]}", json={"content": "new"})
            assert (replaced.status_code, replaced.json()["version"]) == (200, 2)

    asyncio.run(scenario())


def test_requests_for_files_meet_a_damaged_page_as_corrupt(
    intact: tuple[File, str], tmp_path: File
) -> None:
    errors = Counter[str]()

    async def scenario(data: File) -> None:
        async with (
            open_configured_app(settings_in(data)) as app,
            app.as_(intact[1]) as owner,
        ):
            for answer in (
                await owner.get(FILES),
                await owner.get(f"{FILES}/{NAMES[0]}"),
                await owner.put(f"{FILES}/{NAMES[1]}", json={"content": "new"}),
                await owner.delete(f"{FILES}/{NAMES[2]}"),
            ):
                if not answer.is_success:
                    errors[answer.json()["error"]] += 1

    pages = (intact[0] / "carrel.db").stat().st_size // PAGE_BYTES
    for number in range(1, pages, 3):
        data = File(shutil.copytree(intact[0], tmp_path / f"page {number}"))
        overwrite_page(data / "carrel.db", number)
        with suppress(sqlite3.DatabaseError):  # A page without which the store does not open.
            asyncio.run(scenario(data))
    assert {*errors} == {"corrupt"}


def test_doctor_names_a_damaged_file_and_backup_refuses(data: File, tmp_path: File) -> None:
    overwrite_page(data / "carrel.db", page_inside(data / "carrel.db", NAMES[5]))

    report = carrel(data, "doctor", "--json")
    assert report.exit_code == 1
    findings = json.loads(report.stdout)["findings"]
    assert any(NAMES[5] in f"{finding['subject']} {finding['text']}" for finding in findings)
    assert not any(NAMES[6] in finding["subject"] for finding in findings)

    backup = carrel(data, "backup", str(tmp_path / "backup.zip"))
    assert backup.exit_code == 1
    assert "cannot be read" in backup.stderr


def test_doctor_finishes_whatever_page_is_damaged(intact: tuple[File, str], tmp_path: File) -> None:
    pages = (intact[0] / "carrel.db").stat().st_size // PAGE_BYTES
    reported = 0
    for number in range(0, pages, 8):
        data = File(shutil.copytree(intact[0], tmp_path / f"page {number}"))
        overwrite_page(data / "carrel.db", number)
        reported += carrel(data, "doctor").exit_code == 1
    assert reported >= pages // 8 * 0.9


def test_a_damaged_database_is_named_with_a_hint_at_doctor(data: File) -> None:
    with closing(sqlite3.connect(data / "carrel.db")) as db:
        [page] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'counter'").fetchone()
    overwrite_page(data / "carrel.db", page - 1)

    result = carrel(data, "gc")

    assert result.exit_code == 1
    assert str(data / "carrel.db") in result.stderr
    assert "carrel doctor" in result.stderr


def test_an_empty_database_beside_its_key_is_a_lost_store(data: File) -> None:
    os.truncate(data / "carrel.db", 0)

    result = carrel(data, "doctor")

    assert result.exit_code == 1
    assert "the store was lost" in result.stderr
    assert (data / "carrel.db").stat().st_size == 0


def test_data_files_are_private_in_an_open_directory(data: File) -> None:
    data.chmod(0o755)
    (data / "carrel.db").chmod(0o644)

    def modes() -> dict[str, int]:
        return {file.name: file.stat().st_mode & 0o077 for file in data.iterdir()}

    async def scenario() -> None:
        async with open_configured_app(settings_in(data)):
            assert not any(modes().values()), modes()

    asyncio.run(scenario())
