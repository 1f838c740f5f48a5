"""Maintenance commands as an operator runs them."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path as File
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.empty_stores import OpenedStore, fill, put_text

from carrel.actions.policy.tenant_rules import secret_context
from carrel.adapters.aes_vault import AesGcmVault
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.sqlite import open_store
from carrel.cli import COMMANDS, main
from carrel.core.store.commit import Commit
from carrel.core.store.record import RecordChange, RecordType

CARREL = File(sys.executable).with_name("carrel")
HEAVY = ("asyncio", "asyncpg", "httpx", "msgspec", "rich", "sqlite3", "starlette", "uvicorn")

ISOLATION_LINE = "sandbox: bubblewrap"


def environment(**settings: str) -> dict[str, str]:
    """The environment with these settings and no other CARREL_ variables."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith("CARREL_")}
    return rest | {f"CARREL_{name.upper()}": value for name, value in settings.items()}


def carrel(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one command in this process; ``run_process`` runs one in its own."""
    command = [*map(str, arguments)]
    theirs = {name: None for name in os.environ if name.startswith("CARREL_")}
    env = {**theirs, **environment(**settings)}
    done = CliRunner().invoke(main, command, env=env)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def run_process(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [str(CARREL), *map(str, arguments)]
    done = subprocess.run(
        command,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_json(*arguments: object, **settings: str) -> tuple[int, Any]:
    """The exit code of a command and its standard output, which is one JSON value."""
    done = carrel(*arguments, "--json", **settings)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def data(tmp_path: File) -> File:
    """A data directory with every kind of data, including a secret."""
    directory = tmp_path / "data"
    directory.mkdir()
    vault = AesGcmVault.from_file(directory / "vault.key")
    sealed = vault.seal(b"open sesame", secret_context("acme", "sec_1"))

    async def make() -> None:
        objects = DirectoryBlobStore(directory / "objects")
        async with open_store(directory / "carrel.db", objects=objects) as store:
            await fill(OpenedStore(store, objects))
            changes = (
                RecordChange("acme", RecordType.SECRET, "sec_1", {"sealed": sealed}),
                RecordChange("*", RecordType.VAULT, "key", {"fingerprint": vault.fingerprint()}),
            )
            await store.trees.commit([Commit((), "ada", "seal", 1, changes=changes)])

    asyncio.run(make())
    return directory


@pytest.fixture
def settings(data: File) -> dict[str, str]:
    return {"data": str(data), "blobs_url": f"file://{data}/objects"}


def execute_sql(data: File, sql: str) -> None:
    with closing(sqlite3.connect(data / "carrel.db")) as db, db:
        db.execute(sql)


def test_doctor_finds_no_problems_in_an_intact_store(settings: dict[str, str]) -> None:
    done = carrel("doctor", **settings)

    assert (done.returncode, done.stdout) == (0, f"{ISOLATION_LINE}\nno problems found\n")
    assert re.search(r"^examining rows: (\d+) of \1$", done.stderr, re.MULTILINE)
    assert "examining objects: 3 of 3" in done.stderr
    nothing: dict[str, Any] = {"ok": True, "errors": 0, "warnings": 0, "findings": []}
    nothing["sandbox"] = {"tier": "bubblewrap", "lacking": []}
    assert run_json("doctor", **settings) == (0, nothing)


def test_doctor_reports_errors_and_exits_with_1(settings: dict[str, str], data: File) -> None:
    execute_sql(data, "DELETE FROM version WHERE path = 'SOUL.md' AND version = 2")

    done = carrel("doctor", **settings)
    code, report = run_json("doctor", **settings)

    subjects = ["template sales of acme SOUL.md", "agent marco of acme SOUL.md"]
    text = "version 2 is missing"
    assert done.returncode == code == 1
    assert done.stdout.splitlines() == [
        ISOLATION_LINE,
        *(f"error: {subject}: {text}" for subject in subjects),
        "2 errors, 0 warnings",
    ]
    assert (report["ok"], report["errors"]) == (False, 2)
    assert report["findings"] == [
        {"level": "error", "subject": subject, "text": text} for subject in subjects
    ]


def test_warnings_fail_only_with_strict(settings: dict[str, str], data: File) -> None:
    execute_sql(data, "INSERT INTO content VALUES (2, x'00', 1, 0, NULL) ON CONFLICT DO NOTHING")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    execute_sql(data, f"INSERT INTO content VALUES (99, x'{empty}', 0, 0, x'')")
    execute_sql(data, "UPDATE counter SET value = 99 WHERE name = 'content'")

    done = carrel("doctor", **settings)

    assert done.returncode == 0
    assert "warning: content: 1 row is unreferenced; run carrel gc" in done.stdout
    assert "no problems found, 1 warning\n" in done.stdout
    assert carrel("doctor", "--strict", **settings).returncode == 1
    assert run_json("gc", **settings)[1]["contents"] == 1
    assert carrel("doctor", "--strict", **settings).returncode == 0


def test_doctor_detects_another_vault_key(settings: dict[str, str], data: File) -> None:
    (data / "vault.key").unlink()

    code, report = run_json("doctor", **settings)

    assert code == 1
    assert [finding["subject"] for finding in report["findings"]] == ["vault"]


def test_backup_and_restore_preserve_the_store(
    settings: dict[str, str], data: File, tmp_path: File
) -> None:
    file, other = tmp_path / "backup.zip", tmp_path / "other"

    done = carrel("backup", file, **settings)
    assert done.returncode == 0
    assert "3 objects" in done.stdout
    assert "The vault key" in done.stdout
    assert "is not included" in done.stdout
    assert carrel("doctor", "--backup", file).stdout == "no problems found\n"

    target = {"data": str(other), "blobs_url": f"file://{other}/objects"}
    done = carrel("restore", file, **target)
    assert done.returncode == 0
    assert "restored" in done.stdout
    assert "The backup was encrypted with the vault key" in done.stderr
    assert carrel("doctor", **target).returncode == 1
    (other / "vault.key").write_bytes((data / "vault.key").read_bytes())
    assert carrel("doctor", **target).returncode == 0
    assert carrel("gc", **target).returncode == 0
    assert carrel("doctor", **target).returncode == 0


def test_vault_key_is_not_in_a_backup(settings: dict[str, str], data: File, tmp_path: File) -> None:
    code, report = run_json("backup", tmp_path / "backup.zip", **settings)

    key = (data / "vault.key").read_bytes().strip()
    with zipfile.ZipFile(tmp_path / "backup.zip") as opened:
        everything = b"".join(opened.read(name) for name in opened.namelist())
    assert (code, report["ok"], report["vaultKeyIncluded"]) == (0, True, False)
    assert report["vaultKey"] == AesGcmVault.from_text(key.decode()).fingerprint()
    assert key not in everything
    assert b"open sesame" not in everything
    assert b"v1." in everything


def test_failure_is_reported_in_one_line(
    settings: dict[str, str], data: File, tmp_path: File
) -> None:
    file, empty = tmp_path / "backup.zip", {"data": str(tmp_path / "nowhere")}
    assert run_json("backup", file, **settings)[0] == 0

    again = carrel("backup", file, **settings)
    full = carrel("restore", file, **settings)
    nothing = carrel("doctor", **empty)
    file.write_bytes(file.read_bytes()[:-100])
    cut = carrel("restore", file, data=str(tmp_path / "fresh"))

    for done, text in (
        (again, "Error: backup.zip already exists\n"),
        (
            full,
            "Error: the store is not empty; a backup can only be restored into an empty store\n",
        ),
        (nothing, f"Error: no store at {tmp_path}/nowhere/carrel.db\n"),
        (cut, "Error: the backup is damaged: the file cannot be read\n"),
    ):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith(text)
    assert not (tmp_path / "nowhere").exists()
    assert run_json("doctor", **empty) == (
        1,
        {"ok": False, "problem": f"no store at {tmp_path}/nowhere/carrel.db"},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["doctor", "--frobnicate"],
        ["backup"],
        ["restore", "there-is-no-such-file"],
        ["doctor", "--backup", "there-is-no-such-file"],
        ["gc", "--grace", "-1"],
    ],
    ids=" ".join,
)
def test_invalid_arguments_exit_with_2(arguments: list[str]) -> None:
    assert carrel(*arguments).returncode == 2


@pytest.mark.parametrize(
    "invalid",
    [{"database_url": "mysql://x"}, {"vault_key": "short"}, {"gc_interval_minutes": "often"}],
    ids=str,
)
def test_invalid_settings_are_named(settings: dict[str, str], invalid: dict[str, str]) -> None:
    done = carrel("doctor", **settings | invalid)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")


def test_file_that_is_no_database_is_named(tmp_path: File) -> None:
    (tmp_path / "carrel.db").write_text("not a database at all, and long enough to tell" * 99)

    done = carrel("doctor", data=str(tmp_path))

    problem = f"cannot open {tmp_path / 'carrel.db'}: file is not a database"
    assert (done.returncode, done.stderr) == (1, f"Error: {problem}\n")


def test_unreachable_database_is_named(tmp_path: File) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"

    done = carrel("doctor", data=str(tmp_path), database_url=url)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")


def test_store_moves_from_sqlite_to_postgresql(
    settings: dict[str, str], data: File, tmp_path: File, postgres_url: str
) -> None:
    file, target = tmp_path / "backup.zip", settings | {"database_url": postgres_url}
    assert carrel("backup", file, **settings).returncode == 0

    assert carrel("restore", file, **target).returncode == 0

    assert carrel("doctor", **target).stdout == f"{ISOLATION_LINE}\nno problems found\n"
    assert run_json("gc", **target)[0] == 0
    assert run_json("backup", tmp_path / "again.zip", **target)[0] == 0


def test_gc_deletes_large_objects_in_two_steps(settings: dict[str, str], data: File) -> None:
    objects = DirectoryBlobStore(data / "objects")
    stray = "sha256:" + "0" * 64
    asyncio.run(objects.put(stray, b"stray"))  # type: ignore[arg-type]  # shaped like a digest

    assert run_json("gc", "--grace", 0, **settings)[1]["discarded"] == 1
    assert run_json("gc", "--grace", 60, **settings)[1]["objects"] == 0
    assert asyncio.run(objects.get(stray)) == b"stray"  # type: ignore[arg-type]  # as above
    assert run_json("gc", "--grace", 0, **settings)[1]["objects"] == 1
    assert asyncio.run(objects.get(stray)) is None  # type: ignore[arg-type]  # as above


def test_doctor_works_during_writes(settings: dict[str, str], data: File) -> None:
    async def write() -> None:
        objects = DirectoryBlobStore(data / "objects")
        async with open_store(data / "carrel.db", objects=objects) as store:
            shelter = OpenedStore(store, objects)
            command = [str(CARREL), "doctor"]
            doctor = await asyncio.create_subprocess_exec(
                *command, env=environment(**settings), stdout=asyncio.subprocess.PIPE
            )
            report = asyncio.create_task(doctor.communicate())
            while not report.done():
                await put_text(shelter, "once more")
            out, _ = await report
            assert (doctor.returncode, out) == (
                0,
                f"{ISOLATION_LINE}\nno problems found\n".encode(),
            )

    asyncio.run(write())


def test_terminal_gets_progress_bars(settings: dict[str, str]) -> None:
    mine, theirs = pty.openpty()
    variables = environment(**settings) | {"TERM": "xterm", "COLUMNS": "100", "LINES": "24"}
    process = subprocess.Popen(
        [str(CARREL), "doctor"], env=variables, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(mine, 65536):
            output += chunk
    except OSError:
        pass  # Linux raises OSError when the other side is closed
    os.close(mine)
    out, _ = process.communicate(timeout=60)

    assert (process.returncode, out) == (0, f"{ISOLATION_LINE}\nno problems found\n".encode())
    assert re.search(rb"examining rows .*\xe2\x94\x81.*?(\d+)/\1\b", output)
    assert re.search(rb"examining objects .*?3/3\b", output)


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['carrel', '--help']\n"
        "from carrel.cli import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert not set(done.stderr.split()) & set(HEAVY)
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\w", done.stdout, re.MULTILINE)
    assert "..." not in done.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version_is_printed(arguments: list[str]) -> None:
    done = run_process(*arguments)

    assert re.fullmatch(r"(carrel )?\d+\.\d+\.\d+\n", done.stdout)
