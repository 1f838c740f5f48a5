"""``carrel sync`` with links, unusual names, editors that save by renaming, and crashes."""

from __future__ import annotations

import os
import resource
import socket
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path as File
from typing import Any

import pytest
from tests.client.server_fixture import AgentEditor
from tests.client.sync_process import STATE, SyncProcess
from tests.support.server_process import ServerProcess

from carrel.cli.sync import directory as sync_directory
from carrel.cli.sync import scan
from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.scan import DirectoryScanner
from carrel_client.local_directory import atomic_rename

BYTES = {"Accept": "application/octet-stream"}
BYTES_SENT = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def pair(live: ServerProcess, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    (tmp_path / "synced").mkdir()
    return SyncProcess(live, editor, tmp_path / "synced")


@pytest.fixture
def folder(tmp_path: File) -> Any:
    synced = SyncedDirectory(tmp_path / "synced")
    yield synced
    synced.close()


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def names(directory: File) -> set[str]:
    return {file.relative_to(directory).as_posix() for file in directory.rglob("*")}


def test_unsyncable_files_are_named_and_others_are_synced(pair: SyncProcess) -> None:
    outside = pair.dir.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("not yours")
    pair.write("large.md", b"x" * (4 * 2**20 + 1))
    pair.write("over.md", b"x" * (2**20 + 1))
    pair.write("back\\slash.md", "x")
    pair.write("red\x1b[31m\nsent all.md", "x")
    pair.write("fine.md", "fine")
    (pair.dir / "link.md").symlink_to(outside / "secret.md")
    (pair.dir / "linked").symlink_to(outside)
    os.mkfifo(pair.dir / "pipe")
    File(os.fsdecode(os.fsencode(pair.dir) + b"/caf\xe9.md")).write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(pair.dir, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        done = pair.sync()

    reasons = {row["path"]: row["problem"] for row in done["leftOut"]}
    assert reasons.pop("link.md") == reasons.pop("linked") == "is a symbolic link"
    assert reasons.pop("pipe") == reasons.pop("socket") == "is not a regular file"
    assert "bytes" in reasons.pop("large.md")
    assert "the limit is 1048576" in reasons.pop("over.md")
    assert "backslash" in reasons.pop("back\\slash.md")
    assert "not valid Unicode" in reasons.pop("caf\\udce9.md")
    assert "control character" in reasons.pop("red\\x1b[31m\\nsent all.md")
    assert not reasons
    assert pair.server_files() == {"fine.md": "fine"}
    assert pair.code == 1


def test_bytes_that_are_not_text_are_synced_both_ways(pair: SyncProcess) -> None:
    """Alone and with others, whatever their bytes; a conflict keeps both."""
    pair.write("binary.md", b"a\0b")
    pair.write("pictures/latin.png", b"caf\xe9")
    pair.sync()
    root = f"/v1/agents/{pair.editor.agent}/files"
    served = pair.editor.http.get(f"{root}/pictures/latin.png", headers=BYTES)
    assert (served.content, served.headers["content-type"]) == (b"caf\xe9", "image/png")
    assert pair.editor.http.get(f"{root}/binary.md", headers=BYTES).content == b"a\0b"
    pair.assert_settled()

    pair.write("pictures/latin.png", b"\xff\0 alone")
    pair.editor.http.put(f"{root}/theirs.bin", content=bytes(range(256)), headers=BYTES_SENT)
    done = pair.sync()
    assert (done["sent"], done["received"]) == (["pictures/latin.png"], ["theirs.bin"])
    assert (pair.dir / "theirs.bin").read_bytes() == bytes(range(256))
    served = pair.editor.http.get(f"{root}/pictures/latin.png", headers=BYTES)
    assert (served.content, served.headers["content-type"]) == (b"\xff\0 alone", "image/png")

    pair.write("theirs.bin", b"\xfemine")
    pair.editor.http.put(f"{root}/theirs.bin", content=b"\xffthey", headers=BYTES_SENT)
    [conflict] = pair.sync()["conflicts"]
    assert (pair.dir / conflict["copy"]).read_bytes() == b"\xffthey"
    assert (pair.dir / "theirs.bin").read_bytes() == b"\xfemine"


def test_links_are_not_written_through(pair: SyncProcess) -> None:
    outside = pair.dir.parent / "outside"
    outside.mkdir()
    (pair.dir / "notes").symlink_to(outside)
    pair.editor.put("notes/a.md", "theirs")

    done = pair.sync()

    assert not list(outside.iterdir())
    assert {row["path"] for row in done["leftOut"]} >= {"notes"}
    assert pair.server_files() == {"notes/a.md": "theirs"}


def test_directory_replaced_by_a_link_deletes_nothing(pair: SyncProcess) -> None:
    pair.write("notes/a.md", "mine")
    pair.sync()
    outside = pair.dir.parent / "outside"
    outside.mkdir()
    os.rename(pair.dir / "notes", pair.dir.parent / "elsewhere")
    (pair.dir / "notes").symlink_to(outside)
    pair.sync()
    assert pair.server_files() == {"notes/a.md": "mine"}
    assert not list(outside.iterdir())


def test_file_in_place_of_a_directory_is_reported(pair: SyncProcess) -> None:
    pair.write("notes", "a file")
    pair.editor.put("notes/a.md", "theirs")
    done = pair.sync()
    assert "notes/a.md" in {row["path"] for row in done["leftOut"]}
    assert pair.local_files() == {"notes": "a file"}


def test_names_that_some_file_systems_confuse_are_reported(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    pair.editor.put("A.md", "theirs")
    done = pair.sync()
    assert [row["path"] for row in done["leftOut"]] == ["a.md"]
    assert (pair.local_files(), pair.server_files()) == (
        {"a.md": "mine", "A.md": "theirs"},
        {"A.md": "theirs"},
    )


def test_rename_that_changes_case_only_is_synced(pair: SyncProcess) -> None:
    pair.write("readme.md", "1")
    pair.sync()
    os.rename(pair.dir / "readme.md", pair.dir / "README.md")
    assert pair.sync()["ok"]
    assert pair.local_files() == pair.server_files() == {"README.md": "1"}


def test_hidden_and_temporary_files_are_not_uploaded(pair: SyncProcess) -> None:
    for name in (".hidden.md", ".git/config", "a.md~", ".a.md.swp", "4913", "#a.md#", "a.tmp"):
        pair.write(name, "x")
    pair.editor.put("b.tmp", "theirs")
    done = pair.sync()
    assert pair.server_files() == {"b.tmp": "theirs"}
    assert [row["path"] for row in done["leftOut"]] == ["b.tmp"]
    assert not (pair.dir / "b.tmp").exists()


def test_modes_are_kept_and_hard_links_are_not_written_into(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    (pair.dir / "a.md").chmod(0o640)
    os.link(pair.dir / "a.md", pair.dir.parent / "other.md")
    pair.sync()
    pair.editor.put("a.md", "2")
    pair.sync()
    assert (pair.dir / "a.md").stat().st_mode & 0o777 == 0o640
    assert (pair.dir.parent / "other.md").read_text("utf-8") == "1"


def test_empty_directories_are_removed_with_their_last_file(pair: SyncProcess) -> None:
    pair.write("notes/deep/a.md", "1")
    pair.write("notes/b.md", "1")
    pair.sync()
    pair.editor.delete("notes/deep/a.md")
    pair.sync()
    assert (pair.dir / "notes/b.md").exists()
    assert not (pair.dir / "notes/deep").exists()


@dataclass
class Clock:
    """A clock that a test advances; every file appears to be newer."""

    now: float = 1000.0

    def scanner(self, folder: SyncedDirectory) -> DirectoryScanner:
        return DirectoryScanner(folder, 0.5, elapsed=lambda: self.now, now=lambda: 0.0)


def test_file_is_read_after_it_has_settled(folder: SyncedDirectory) -> None:
    clock = Clock()
    scanner = clock.scanner(folder)
    file = File(folder.path) / "a.md"
    file.write_text("half")
    assert scanner.scan(()).unsettled == {"a.md"}
    clock.now += 0.4
    file.write_text("half and half")
    assert scanner.scan(()).unsettled == {"a.md"}
    clock.now += 0.4
    assert scanner.scan(()).unsettled == {"a.md"}
    clock.now += 0.2
    look = scanner.scan(())
    assert (look.unsettled, look.files["a.md"].digest) == (set(), digest("half and half"))


def test_deletion_counts_after_it_has_settled(folder: SyncedDirectory) -> None:
    clock = Clock()
    scanner = clock.scanner(folder)
    file = File(folder.path) / "a.md"
    assert not scanner.scan(["a.md"]).is_determined("a.md")
    clock.now += 0.4
    file.write_text("saved by an editor that moves the old one away first")
    assert not scanner.scan(["a.md"]).is_determined("a.md")
    clock.now += 0.6
    assert scanner.scan(["a.md"]).files.keys() == {"a.md"}
    file.unlink()
    assert not scanner.scan(["a.md"]).is_determined("a.md")
    clock.now += 0.6
    look = scanner.scan(["a.md"])
    assert look.is_determined("a.md")
    assert "a.md" not in look.files


def test_time_that_passes_after_a_file_was_read_does_not_settle_it(
    folder: SyncedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = File(folder.path) / "a.md"
    file.write_text("half")
    clock, read_file = Clock(file.stat().st_mtime), scan._read_file

    def stall_after_reading(*arguments: Any) -> Any:
        content = read_file(*arguments)
        clock.now += 10
        return content

    monkeypatch.setattr(scan, "_read_file", stall_after_reading)
    scanner = DirectoryScanner(folder, 0.5, elapsed=lambda: clock.now, now=lambda: clock.now)
    assert scanner.scan(()).unsettled == {"a.md"}


def test_change_within_one_clock_tick_is_detected(folder: SyncedDirectory) -> None:
    scanner, file = DirectoryScanner(folder, 0), File(folder.path) / "a.md"
    file.write_text("1")
    info = file.stat()
    assert scanner.scan(()).files["a.md"].digest == digest("1")
    file.write_text("2")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert scanner.scan(()).files["a.md"].digest == digest("2")


@pytest.mark.parametrize("can_exchange", [True, False])
def test_file_saved_during_the_sync_is_not_replaced(
    folder: SyncedDirectory, can_exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_exchange:
        monkeypatch.setattr(atomic_rename, "_renameat2", lambda: None)
    file = File(folder.path) / "a.md"
    file.write_text("saved meanwhile")
    assert not folder.put("a.md", b"theirs", digest("as it was seen"))
    assert not folder.put("a.md", b"theirs", None)
    assert not folder.remove("a.md", digest("as it was seen"))
    assert not folder.put("b.md", b"theirs", digest("as it was seen"))
    assert file.read_text("utf-8") == "saved meanwhile"
    assert names(File(folder.path)) == {"a.md"}

    assert folder.put("a.md", b"theirs", digest("saved meanwhile"))
    assert file.read_text("utf-8") == "theirs"
    assert names(File(folder.path)) == {"a.md"}


def test_full_disk_leaves_no_partial_file(folder: SyncedDirectory) -> None:
    file = File(folder.path) / "a.md"
    file.write_text("mine")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        for was in (digest("mine"), None):
            with pytest.raises(OSError):
                folder.put("a.md" if was else "b/c.md", b"x" * 20_000, was)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(File(folder.path)) <= {"a.md", "b"}
    assert file.read_text("utf-8") == "mine"


def test_file_saved_during_the_exchange_is_restored(
    folder: SyncedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = File(folder.path) / "a.md"
    file.write_text("seen")
    real = atomic_rename.swap_names
    saved: list[str] = []

    def write_late(first: str, second: str, directory_fd: int) -> bool:
        if not saved:
            saved.append(second)
            file.write_text("saved in that moment")
        return real(first, second, directory_fd)

    monkeypatch.setattr(sync_directory, "swap_names", write_late)
    assert not folder.put("a.md", b"theirs", digest("seen"))
    assert file.read_text("utf-8") == "saved in that moment"
    assert names(File(folder.path)) == {"a.md"}


def test_temporary_files_of_a_crash_are_recovered(pair: SyncProcess) -> None:
    pair.write("notes/a.md", "known")
    pair.sync()
    pair.write("notes/.carrel-swap-1", "known")
    lost = "a person's"
    pair.write("notes/.carrel-swap-2", lost)
    pair.write(".carrel-new-3", "half writ")

    pair.sync()

    copy = f"notes/recovered.conflict-{digest(lost)[:8]}.md"
    assert pair.local_files() == {"notes/a.md": "known", copy: lost}
    assert names(pair.dir) >= {STATE, copy}
    assert not [name for name in names(pair.dir) if "carrel-swap" in name or "-new-" in name]


def test_removed_directory_deletes_nothing_on_the_server(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    pair.sync()
    (pair.dir / STATE).unlink()
    (pair.dir / "a.md").unlink()
    pair.sync()  # It starts over, and removes nothing.
    assert pair.local_files() == pair.server_files() == {"a.md": "mine"}


def test_file_saved_by_renaming_is_not_taken_for_deleted(
    folder: SyncedDirectory,
) -> None:
    clock = Clock()
    scanner, copy = clock.scanner(folder), "a.conflict-00000000.md"
    file = File(folder.path) / copy
    (File(folder.path) / "a.md").write_text("mine")
    scanner.scan(())
    clock.now += 1
    assert scanner.scan((), {"a.md": copy}).unsettled == {"a.md"}
    clock.now += 0.4
    file.write_text("saved again")
    assert scanner.scan((), {"a.md": copy}).copies == {copy}
    file.unlink()
    assert scanner.scan((), {"a.md": copy}).unsettled == {"a.md"}
    clock.now += 0.6
    look = scanner.scan((), {"a.md": copy})
    assert (look.unsettled, look.copies) == (set(), set())
