"""A damaged backup or store is refused, naming the damaged part."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path as File

import pytest
from tests.support.empty_stores import (
    LARGE,
    OpenedStore,
    Stores,
    content,
    fill,
    fill_file,
    put_text,
    restore,
    rows_of,
    take_backup,
)

from carrel.actions.maintenance import backup
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import digest
from carrel.core.maintenance.tables import TABLES
from carrel.ports import CorruptContent

pytestmark = pytest.mark.anyio

Change = Callable[[dict[str, bytes]], object]


def rewrite(file: File, change: Change, *, fix_hashes: bool = False) -> None:
    """Change the members of a backup; optionally correct every hash."""
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    change(members)
    if fix_hashes:
        manifest = json.loads(members["manifest.json"])
        for table in TABLES:
            text = members[f"{table}.jsonl"]
            manifest["tables"][table]["rows"] = text.count(b"\n")
            manifest["tables"][table]["sha256"] = hashlib.sha256(text).hexdigest()
        manifest["objects"] = sum(name.startswith("objects/") for name in members)
        members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.comment = b"0" * 64
        for name, text in members.items():
            opened.writestr(name, text)
    body = content(file)[:-64]
    fill_file(file, body + hashlib.sha256(body).hexdigest().encode())


def replace(member: str, old: bytes, new: bytes) -> Change:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[member]
        members[member] = members[member].replace(old, new, 1)

    return change


def first_object(members: dict[str, bytes]) -> str:
    return next(name for name in members if name.startswith("objects/"))


DAMAGES: dict[str, tuple[Change, type[Exception], str]] = {
    "a changed row": (
        replace("version.jsonl", b'"ada"', b'"eve"'),
        CorruptContent,
        r"version\.jsonl",
    ),
    "a cut table": (
        lambda members: members.update({"entry.jsonl": members["entry.jsonl"][:-9]}),
        CorruptContent,
        r"entry\.jsonl",
    ),
    "a lost row": (
        lambda members: members.update({"key_usage.jsonl": b""}),
        CorruptContent,
        r"key_usage\.jsonl does not match its manifest",
    ),
    "a row of another type": (
        replace("key_usage.jsonl", b'"key_1"', b"17"),
        CorruptContent,
        r"key_usage\.jsonl cannot be read",
    ),
    "changed large content": (
        lambda members: members.update({first_object(members): b"0" * 99_999 + b"1"}),
        CorruptContent,
        r"objects/[0-9a-f]{64} does not match its digest",
    ),
    "lost large content": (
        lambda members: members.pop(first_object(members)),
        CorruptContent,
        "members differ from its manifest",
    ),
    "large content under another name": (
        lambda members: members.update(
            {"objects/" + digest(b"strange")[7:]: b"strange", first_object(members): b""}
        ),
        CorruptContent,
        "members differ from its manifest",
    ),
    "a lost table": (
        lambda members: members.pop("delivery_cursor.jsonl"),
        CorruptContent,
        "members differ",
    ),
    "an extra member": (
        lambda members: members.update({"more": b""}),
        CorruptContent,
        "members differ",
    ),
    "no manifest": (
        lambda members: members.pop("manifest.json"),
        ValidationError,
        "not a Carrel backup",
    ),
    "an invalid manifest": (
        lambda members: members.update({"manifest.json": b"[1]"}),
        ValidationError,
        "not a Carrel backup",
    ),
    "a manifest without tables": (
        replace("manifest.json", b"tables", b"t"),
        ValidationError,
        "not a Carrel backup",
    ),
    "a backup of another program": (
        replace("manifest.json", b"carrel-backup", b"other"),
        ValidationError,
        "form",
    ),
    "a newer format": (
        replace("manifest.json", b'"version": 1', b'"version": 2'),
        ValidationError,
        "form",
    ),
    "other columns": (
        replace("manifest.json", b'"fingerprint"', b'"print"'),
        ValidationError,
        "form",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_backup_is_refused_naming_the_member(
    stores: Stores, file: File, damage: str
) -> None:
    change, error, message = DAMAGES[damage]
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
    rewrite(file, change)

    async with stores.open("sqlite") as second:
        with pytest.raises(error, match=message):
            await restore(second, file)
        assert not any((await rows_of(second)).values())


def remove_version(members: dict[str, bytes]) -> None:
    lines = members["version.jsonl"].splitlines(keepends=True)
    del lines[1]
    members["version.jsonl"] = b"".join(lines)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (remove_version, "version 2 is missing"),
        (lambda members: members.pop(first_object(members)), "its content is missing"),
        (
            lambda members: members.update({"objects/" + digest(b"strange")[7:]: b"strange"}),
            "nothing in the backup refers to it",
        ),
    ],
    ids=["a version", "an object", "an unreferenced object"],
)
async def test_an_inconsistent_backup_with_correct_hashes_is_refused(
    stores: Stores, file: File, change: Change, text: str
) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
    rewrite(file, change, fix_hashes=True)

    with pytest.raises(CorruptContent, match=f"the backup is inconsistent: .*{text}"):
        await backup.verify(file)
    findings = await backup.examine_backup(file)
    assert [finding.text for finding in findings.items] == [text]


async def test_a_truncated_backup_is_refused(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as first:
        await fill(first)
        await take_backup(first, file)
    complete = content(file)

    for length in [0, 1, 100, len(complete) // 2, len(complete) - 30, len(complete) - 1]:
        fill_file(file, complete[:length])
        with pytest.raises((CorruptContent, ValidationError)):
            await backup.verify(file)


async def test_a_backup_with_any_byte_changed_is_refused(stores: Stores, file: File) -> None:
    """Including bytes without meaning, such as the times of zip members."""
    async with stores.open("sqlite") as first:
        await put_text(first, "text")
        await put_text(first, "x" * 70_000, path=LARGE)
        await take_backup(first, file)
    original, rng = content(file), random.Random(7)

    for position in rng.sample(range(len(original)), 500):
        changed = bytearray(original)
        changed[position] ^= 1 << rng.randrange(8)
        fill_file(file, bytes(changed))
        with pytest.raises((CorruptContent, ValidationError)):
            await backup.verify(file)


@pytest.mark.parametrize("text", [b"", b"not a zip", b"PK\x05\x06" + bytes(18)])
async def test_a_file_that_is_no_backup_is_refused(file: File, text: bytes) -> None:
    fill_file(file, text)

    with pytest.raises((CorruptContent, ValidationError)):
        await backup.verify(file)


async def test_a_missing_file_is_named(file: File) -> None:
    with pytest.raises(NotFound, match=r"backup\.zip"):
        await backup.verify(file)


async def test_a_damaged_store_gives_no_backup_and_names_the_damage(
    stores: Stores, tmp_path: File
) -> None:
    directory = tmp_path / "backups"
    directory.mkdir()
    lost, other = digest(b"1" * 100_000), digest(b"2" * 100_000)

    async def attempt(damage: Callable[[OpenedStore], Awaitable[object]], message: str) -> None:
        async with stores.open("sqlite") as first:
            await fill(first)
            await damage(first)
            with pytest.raises(CorruptContent, match=message):
                await take_backup(first, directory / "backup.zip")
        assert list(directory.iterdir()) == []

    async def delete_blob(backend: OpenedStore) -> None:
        assert backend.objects
        await backend.objects.discard([lost])
        await backend.objects.delete([lost])

    async def replace_blob(backend: OpenedStore) -> None:
        assert backend.objects
        await backend.objects.discard([other])
        await backend.objects.delete([other])
        await backend.objects.put(other, b"3" * 100_000)

    async def delete_version(backend: OpenedStore) -> None:
        sql = "DELETE FROM version WHERE path = 'SOUL.md' AND version = 2"
        await backend.store.writer.submit(lambda db, _: db.execute(sql))

    await attempt(delete_blob, lost)
    await attempt(replace_blob, other)
    await attempt(delete_version, r"SOUL\.md: version 2 is missing")
