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
from tests.support.server_process import Live

from carrel.cli.sync import directory as sync_directory
from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.scan import DirectoryScanner
from carrel_client import atomic_rename


@pytest.fixture
def both(live: Live, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    (tmp_path / "desk").mkdir()
    return SyncProcess(live, editor, tmp_path / "desk")


@pytest.fixture
def folder(tmp_path: File) -> Any:
    held = SyncedDirectory(tmp_path / "desk")
    yield held
    held.close()


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def names(directory: File) -> set[str]:
    return {file.relative_to(directory).as_posix() for file in directory.rglob("*")}


def test_unsyncable_files_are_named_and_others_are_synced(both: SyncProcess) -> None:
    outside = both.dir.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("not yours")
    both.write("binary.md", b"a\0b")
    both.write("latin.md", b"caf\xe9")
    both.write("large.md", b"x" * (4 * 2**20 + 1))
    both.write("over.md", b"x" * (2**20 + 1))
    both.write("back\\slash.md", "x")
    both.write("red\x1b[31m\nsent all.md", "x")
    both.write("fine.md", "fine")
    (both.dir / "link.md").symlink_to(outside / "secret.md")
    (both.dir / "linked").symlink_to(outside)
    os.mkfifo(both.dir / "pipe")
    File(os.fsdecode(os.fsencode(both.dir) + b"/caf\xe9.md")).write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(both.dir, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        done = both.sync()

    why = {each["path"]: each["problem"] for each in done["leftOut"]}
    assert why.pop("link.md") == why.pop("linked") == "is a symbolic link"
    assert why.pop("pipe") == why.pop("socket") == "is not a regular file"
    assert why.pop("binary.md") == "is not text"
    assert why.pop("latin.md") == "is not UTF-8"
    assert "bytes" in why.pop("large.md")
    assert "the limit is 1048576" in why.pop("over.md")
    assert "backslash" in why.pop("back\\slash.md")
    assert "not valid Unicode" in why.pop("caf\\udce9.md")
    assert "control character" in why.pop("red\\x1b[31m\\nsent all.md")
    assert not why
    assert both.server_files() == {"fine.md": "fine"}
    assert both.code == 1


def test_links_are_not_written_through(both: SyncProcess) -> None:
    outside = both.dir.parent / "outside"
    outside.mkdir()
    (both.dir / "notes").symlink_to(outside)
    both.editor.put("notes/a.md", "theirs")

    done = both.sync()

    assert not list(outside.iterdir())
    assert {each["path"] for each in done["leftOut"]} >= {"notes"}
    assert both.server_files() == {"notes/a.md": "theirs"}


def test_directory_replaced_by_a_link_deletes_nothing(both: SyncProcess) -> None:
    both.write("notes/a.md", "mine")
    both.sync()
    outside = both.dir.parent / "outside"
    outside.mkdir()
    os.rename(both.dir / "notes", both.dir.parent / "elsewhere")
    (both.dir / "notes").symlink_to(outside)
    both.sync()
    assert both.server_files() == {"notes/a.md": "mine"}
    assert not list(outside.iterdir())


def test_file_in_place_of_a_directory_is_reported(both: SyncProcess) -> None:
    both.write("notes", "a file")
    both.editor.put("notes/a.md", "theirs")
    done = both.sync()
    assert "notes/a.md" in {each["path"] for each in done["leftOut"]}
    assert both.local_files() == {"notes": "a file"}


def test_names_that_some_file_systems_confuse_are_reported(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    both.editor.put("A.md", "theirs")
    done = both.sync()
    assert [each["path"] for each in done["leftOut"]] == ["a.md"]
    assert (both.local_files(), both.server_files()) == (
        {"a.md": "mine", "A.md": "theirs"},
        {"A.md": "theirs"},
    )


def test_rename_that_changes_case_only_is_synced(both: SyncProcess) -> None:
    both.write("readme.md", "1")
    both.sync()
    os.rename(both.dir / "readme.md", both.dir / "README.md")
    assert both.sync()["ok"]
    assert both.local_files() == both.server_files() == {"README.md": "1"}


def test_hidden_and_temporary_files_are_not_uploaded(both: SyncProcess) -> None:
    for name in (".hidden.md", ".git/config", "a.md~", ".a.md.swp", "4913", "#a.md#", "a.tmp"):
        both.write(name, "x")
    both.editor.put("b.tmp", "theirs")
    done = both.sync()
    assert both.server_files() == {"b.tmp": "theirs"}
    assert [each["path"] for each in done["leftOut"]] == ["b.tmp"]
    assert not (both.dir / "b.tmp").exists()


def test_modes_are_kept_and_hard_links_are_not_written_into(both: SyncProcess) -> None:
    both.write("a.md", "1")
    (both.dir / "a.md").chmod(0o640)
    os.link(both.dir / "a.md", both.dir.parent / "other.md")
    both.sync()
    both.editor.put("a.md", "2")
    both.sync()
    assert (both.dir / "a.md").stat().st_mode & 0o777 == 0o640
    assert (both.dir.parent / "other.md").read_text("utf-8") == "1"


def test_empty_directories_are_removed_with_their_last_file(both: SyncProcess) -> None:
    both.write("notes/deep/a.md", "1")
    both.write("notes/b.md", "1")
    both.sync()
    both.editor.delete("notes/deep/a.md")
    both.sync()
    assert (both.dir / "notes/b.md").exists()
    assert not (both.dir / "notes/deep").exists()


@dataclass
class Clock:
    """Time that passes when a test says so, and by which every file is of the future."""

    now: float = 1000.0

    def eyes(self, folder: SyncedDirectory) -> DirectoryScanner:
        return DirectoryScanner(folder, 0.5, elapsed=lambda: self.now, now=lambda: 0.0)


def test_file_is_read_after_it_has_settled(folder: SyncedDirectory) -> None:
    clock = Clock()
    scanner = clock.eyes(folder)
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
    scanner = clock.eyes(folder)
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

    def late(one: str, other: str, within: int) -> bool:
        if not saved:
            saved.append(other)
            file.write_text("saved in that moment")
        return real(one, other, within)

    monkeypatch.setattr(sync_directory, "swap_names", late)
    assert not folder.put("a.md", b"theirs", digest("seen"))
    assert file.read_text("utf-8") == "saved in that moment"
    assert names(File(folder.path)) == {"a.md"}


def test_temporary_files_of_a_crash_are_recovered(both: SyncProcess) -> None:
    both.write("notes/a.md", "known")
    both.sync()
    both.write("notes/.carrel-swap-1", "known")
    lost = "a person's"
    both.write("notes/.carrel-swap-2", lost)
    both.write(".carrel-new-3", "half writ")

    both.sync()

    copy = f"notes/recovered.conflict-{digest(lost)[:8]}.md"
    assert both.local_files() == {"notes/a.md": "known", copy: lost}
    assert names(both.dir) >= {STATE, copy}
    assert not [name for name in names(both.dir) if "carrel-swap" in name or "-new-" in name]


def test_removed_directory_deletes_nothing_on_the_server(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    both.sync()
    (both.dir / STATE).unlink()
    (both.dir / "a.md").unlink()
    both.sync()  # It begins anew, and removes nothing.
    assert both.local_files() == both.server_files() == {"a.md": "mine"}


def test_file_saved_by_renaming_is_not_taken_for_deleted(
    folder: SyncedDirectory,
) -> None:
    clock = Clock()
    scanner, copy = clock.eyes(folder), "a.conflict-00000000.md"
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
