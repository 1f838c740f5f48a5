"""What lies about on disks, editors that save in their ways, and crashes: nothing is led astray."""

from __future__ import annotations

import os
import resource
import socket
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path as File
from typing import Any

import pytest
from tests.client.server_fixture import Hands
from tests.client.sync_process import STATE, Synced
from tests.support.server_process import Live

from carrel.cli.sync import directory as sync_directory
from carrel.cli.sync.directory import SyncedDirectory
from carrel.cli.sync.scan import DirectoryScanner
from carrel_client import atomic_rename


@pytest.fixture
def both(live: Live, hands: Hands, tmp_path: File) -> Synced:
    (tmp_path / "desk").mkdir()
    return Synced(live, hands, tmp_path / "desk")


@pytest.fixture
def folder(tmp_path: File) -> Any:
    held = SyncedDirectory(tmp_path / "desk")
    yield held
    held.close()


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def names(directory: File) -> set[str]:
    return {file.relative_to(directory).as_posix() for file in directory.rglob("*")}


def test_what_cannot_be_synced_is_told_by_name_and_all_else_is_synced(both: Synced) -> None:
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

    reason = {each["path"]: each["problem"] for each in done["leftOut"]}
    assert reason.pop("link.md") == reason.pop("linked") == "it is a link"
    assert reason.pop("pipe") == reason.pop("socket") == "it is not a regular file"
    assert reason.pop("binary.md") == "it is not text"
    assert reason.pop("latin.md") == "it is not UTF-8"
    assert "bytes" in reason.pop("large.md")
    assert "a file may have 1048576" in reason.pop("over.md")
    assert "backslash" in reason.pop("back\\slash.md")
    assert "not valid Unicode" in reason.pop("caf\\udce9.md")
    assert "control character" in reason.pop("red\\x1b[31m\\nsent all.md")
    assert not reason
    assert both.there() == {"fine.md": "fine"}
    assert both.code == 1


def test_nothing_is_written_through_a_link(both: Synced) -> None:
    outside = both.dir.parent / "outside"
    outside.mkdir()
    (both.dir / "notes").symlink_to(outside)
    both.hands.put("notes/a.md", "theirs")

    done = both.sync()

    assert not list(outside.iterdir())
    assert {each["path"] for each in done["leftOut"]} >= {"notes"}
    assert both.there() == {"notes/a.md": "theirs"}


def test_a_directory_that_became_a_link_is_not_taken_for_an_empty_one(both: Synced) -> None:
    both.write("notes/a.md", "mine")
    both.sync()
    outside = both.dir.parent / "outside"
    outside.mkdir()
    os.rename(both.dir / "notes", both.dir.parent / "elsewhere")
    (both.dir / "notes").symlink_to(outside)
    both.sync()
    assert both.there() == {"notes/a.md": "mine"}
    assert not list(outside.iterdir())


def test_a_file_where_the_server_has_a_directory_is_told(both: Synced) -> None:
    both.write("notes", "a file")
    both.hands.put("notes/a.md", "theirs")
    done = both.sync()
    assert "notes/a.md" in {each["path"] for each in done["leftOut"]}
    assert both.here() == {"notes": "a file"}


def test_names_that_some_disks_take_for_one_are_told(both: Synced) -> None:
    both.write("a.md", "mine")
    both.hands.put("A.md", "theirs")
    done = both.sync()
    assert [each["path"] for each in done["leftOut"]] == ["a.md"]
    assert (both.here(), both.there()) == ({"a.md": "mine", "A.md": "theirs"}, {"A.md": "theirs"})


def test_a_file_may_be_renamed_in_its_letters_only(both: Synced) -> None:
    both.write("readme.md", "1")
    both.sync()
    os.rename(both.dir / "readme.md", both.dir / "README.md")
    assert both.sync()["ok"]
    assert both.here() == both.there() == {"README.md": "1"}


def test_what_is_hidden_or_in_the_making_never_goes_up(both: Synced) -> None:
    for name in (".hidden.md", ".git/config", "a.md~", ".a.md.swp", "4913", "#a.md#", "a.tmp"):
        both.write(name, "x")
    both.hands.put("b.tmp", "theirs")
    done = both.sync()
    assert both.there() == {"b.tmp": "theirs"}
    assert [each["path"] for each in done["leftOut"]] == ["b.tmp"]
    assert not (both.dir / "b.tmp").exists()


def test_modes_are_kept_and_links_of_others_are_not_written_into(both: Synced) -> None:
    both.write("a.md", "1")
    (both.dir / "a.md").chmod(0o640)
    os.link(both.dir / "a.md", both.dir.parent / "other.md")
    both.sync()
    both.hands.put("a.md", "2")
    both.sync()
    assert (both.dir / "a.md").stat().st_mode & 0o777 == 0o640
    assert (both.dir.parent / "other.md").read_text("utf-8") == "1"


def test_empty_directories_go_with_their_last_file(both: Synced) -> None:
    both.write("notes/deep/a.md", "1")
    both.write("notes/b.md", "1")
    both.sync()
    both.hands.delete("notes/deep/a.md")
    both.sync()
    assert (both.dir / "notes/b.md").exists()
    assert not (both.dir / "notes/deep").exists()


@dataclass
class Clock:
    """Time that passes when a test says so, and by which every file is of the future."""

    now: float = 1000.0

    def eyes(self, folder: SyncedDirectory) -> DirectoryScanner:
        return DirectoryScanner(folder, 0.5, elapsed=lambda: self.now, now=lambda: 0.0)


def test_a_file_is_read_only_once_it_has_been_left_alone(folder: SyncedDirectory) -> None:
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


def test_a_removal_counts_only_once_the_file_has_stayed_away(folder: SyncedDirectory) -> None:
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


def test_a_change_within_one_tick_of_the_disk_s_clock_is_seen(folder: SyncedDirectory) -> None:
    scanner, file = DirectoryScanner(folder, 0), File(folder.path) / "a.md"
    file.write_text("1")
    info = file.stat()
    assert scanner.scan(()).files["a.md"].digest == digest("1")
    file.write_text("2")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert scanner.scan(()).files["a.md"].digest == digest("2")


@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_was_saved_in_the_meantime_is_not_replaced(
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


def test_what_a_disk_has_no_room_for_leaves_none_of_it_behind(folder: SyncedDirectory) -> None:
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


def test_a_save_in_the_very_moment_of_replacing_is_put_back(
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


def test_what_a_crash_left_is_looked_through(both: Synced) -> None:
    both.write("notes/a.md", "known")
    both.sync()
    both.write("notes/.carrel-swap-1", "known")
    lost = "a person's"
    both.write("notes/.carrel-swap-2", lost)
    both.write(".carrel-new-3", "half writ")

    both.sync()

    copy = f"notes/recovered.conflict-{digest(lost)[:8]}.md"
    assert both.here() == {"notes/a.md": "known", copy: lost}
    assert names(both.dir) >= {STATE, copy}
    assert not [name for name in names(both.dir) if "carrel-swap" in name or "-new-" in name]


def test_a_directory_that_was_taken_away_is_not_an_empty_one(both: Synced) -> None:
    both.write("a.md", "mine")
    both.sync()
    (both.dir / STATE).unlink()
    (both.dir / "a.md").unlink()
    both.sync()  # It begins anew, and removes nothing.
    assert both.here() == both.there() == {"a.md": "mine"}


def test_a_copy_that_an_editor_saves_by_renaming_is_not_taken_for_removed(
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
