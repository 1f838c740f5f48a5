"""``carrel sync`` that watches both sides, through editors' saves and lost servers."""

from __future__ import annotations

import json
import os
import signal
import threading
from functools import partial
from pathlib import Path as File
from typing import IO

import httpx
import pytest
from tests.client.server_fixture import AgentEditor, json_of
from tests.client.sync_process import STATE, SyncProcess
from tests.support.server_process import PLAIN, TOKEN, Live, serving
from tests.support.wait import wait_until_sync


@pytest.fixture
def both(live: Live, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    return SyncProcess(live, editor, tmp_path / "desk")


def versions(both: SyncProcess, path: str) -> int:
    return max((row["version"] for row in both.rows() if row["path"] == path), default=0)


def has(both: SyncProcess, path: str, text: str) -> bool:
    try:
        return (both.dir / path).read_text("utf-8") == text
    except FileNotFoundError:
        return False


def is_there(both: SyncProcess, path: str, text: str) -> bool:
    return both.server_files().get(path) == text


def moved(both: SyncProcess, enough: int) -> bool:
    return len(both.server_files()) >= enough or len(both.local_files()) >= enough


def reached(told: list[tuple[str, str]], what: tuple[str, str], enough: int) -> bool:
    return told.count(what) >= enough


def test_watch_copies_changes_of_both_sides(both: SyncProcess) -> None:
    with both.watched() as process:
        both.write("notes/mine.md", "mine")
        wait_until_sync(
            lambda: both.server_files() == {"notes/mine.md": "mine"},
            "the server has notes/mine.md alone, with: mine",
        )
        both.editor.put("notes/theirs.md", "theirs")
        wait_until_sync(
            lambda: has(both, "notes/theirs.md", "theirs"), "notes/theirs.md contains: theirs"
        )
        both.write("notes/theirs.md", "edited here")
        wait_until_sync(
            lambda: both.server_files().get("notes/theirs.md") == "edited here",
            "the server's notes/theirs.md contains: edited here",
        )
        both.editor.delete("notes/mine.md")
        wait_until_sync(
            lambda: not (both.dir / "notes/mine.md").exists(), "notes/mine.md is deleted"
        )
        (both.dir / "notes/theirs.md").unlink()
        wait_until_sync(lambda: both.server_files() == {}, "the server has no file")
    assert process.returncode == 0


def test_saves_by_renaming_or_in_pieces_make_one_version(both: SyncProcess) -> None:
    both.write("a.md", "1")
    with both.watched("--settle", "2"):
        wait_until_sync(
            lambda: both.server_files() == {"a.md": "1"}, "the server has a.md alone, with: 1"
        )
        # Like vim: the old one is moved away, the new one is written, the old one is removed.
        file = both.dir / "a.md"
        os.rename(file, both.dir / "a.md~")
        file.write_text("2")
        (both.dir / "a.md~").unlink()
        wait_until_sync(
            lambda: both.server_files() == {"a.md": "2"}, "the server has a.md alone, with: 2"
        )
        assert versions(both, "a.md") == 2
        # Like others: a whole new file takes the place of the old.
        both.write(".a.md.new", "3")
        os.rename(both.dir / ".a.md.new", file)
        wait_until_sync(
            lambda: both.server_files() == {"a.md": "3"}, "the server has a.md alone, with: 3"
        )
        assert versions(both, "a.md") == 3
        # Like a program that is slow: emptied first, and then filled bit by bit.
        with file.open("w") as slow:
            for _ in range(200):
                slow.write("4")
                slow.flush()
        wait_until_sync(
            lambda: both.server_files() == {"a.md": "4" * 200},
            "the server has a.md alone, with the text",
        )
        assert versions(both, "a.md") == 4


def test_own_writes_cause_no_further_pass(both: SyncProcess) -> None:
    told: list[tuple[str, str]] = []

    def listen(lines: IO[str]) -> None:
        for line in lines:
            each = json.loads(line)
            told.extend((how, path) for how in ("sent", "received") for path in each[how])

    # What is there need not be told yet, and who writes in between makes one change of two.
    with both.watched() as process:
        assert process.stdout
        ears = threading.Thread(target=listen, args=(process.stdout,))
        ears.start()
        for number in range(1, 4):
            both.editor.put("a.md", f"theirs {number}")
            wait_until_sync(
                partial(reached, told, ("received", "a.md"), number),
                f"a.md is received {number} times",
            )
            assert has(both, "a.md", f"theirs {number}")
            both.write("a.md", f"mine {number}")
            wait_until_sync(
                partial(reached, told, ("sent", "a.md"), number), f"a.md is sent {number} times"
            )
            assert is_there(both, "a.md", f"mine {number}")
        both.write("last.md", "last")
        wait_until_sync(lambda: ("sent", "last.md") in told, "last.md is sent")
        assert versions(both, "a.md") == 6
        process.send_signal(signal.SIGINT)
        ears.join(60)
    assert len([path for _, path in told if path == "a.md"]) == 6


def test_conflict_is_reported_once_and_sync_continues_when_resolved(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    both.editor.put("a.md", "theirs")
    with both.watched() as process:
        wait_until_sync(lambda: len(both.local_files()) == 2, "there are two local files")
        [copy] = [path for path in both.local_files() if path != "a.md"]
        both.write("b.md", "another")
        wait_until_sync(lambda: "b.md" in both.server_files(), "the server has b.md")
        assert (both.server_files()["a.md"], has(both, "a.md", "mine")) == ("theirs", True)
        (both.dir / copy).unlink()
        wait_until_sync(
            lambda: both.server_files()["a.md"] == "mine", "the server's a.md contains: mine"
        )
    assert process.returncode == 0


def test_watch_survives_a_restart_of_the_server(tmp_path: File) -> None:
    data = tmp_path / "store"
    with serving(data) as first:
        port = first.url.rpartition(":")[2]
        with httpx.Client(base_url=first.url, headers=_owner(), timeout=60, verify=PLAIN) as http:
            both = SyncProcess(first, AgentEditor.of_new_agent(http), tmp_path / "desk")
            with both.watched() as process:
                both.write("a.md", "1")
                wait_until_sync(
                    lambda: both.server_files() == {"a.md": "1"},
                    "the server has a.md alone, with: 1",
                )
                first.kill()
                both.write("a.md", "written while nobody answered")
                with serving(data, port=port):
                    wait_until_sync(
                        lambda: _text(both) == {"a.md": "written while nobody answered"},
                        "the server has what was written meanwhile",
                    )
                    both.editor.put("b.md", "heard again")
                    wait_until_sync(
                        lambda: has(both, "b.md", "heard again"), "b.md contains: heard again"
                    )
            assert process.returncode == 0


def _owner() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


def _text(both: SyncProcess) -> dict[str, str]:
    try:
        return both.server_files()
    except httpx.TransportError:
        return {}


def test_second_watch_of_a_directory_is_refused(both: SyncProcess) -> None:
    with both.watched():
        both.write("a.md", "1")
        wait_until_sync(
            lambda: both.server_files() == {"a.md": "1"}, "the server has a.md alone, with: 1"
        )
        assert "is being synced by another process" in both.sync()["problem"]


def test_sync_killed_at_any_moment_loses_nothing(both: SyncProcess) -> None:
    mine = {f"mine-{number}.md": f"mine {number}" for number in range(40)}
    theirs = {f"theirs-{number}.md": f"theirs {number}" for number in range(40)}
    for path, text in theirs.items():
        both.editor.put(path, text)
    for path, text in mine.items():
        both.write(path, text)
    for enough in (45, 60, 75):
        with both.watched() as process:
            wait_until_sync(partial(moved, both, enough), f"{enough} files are on one side")
            process.kill()
            process.wait()
    assert both.sync()["ok"]
    assert both.local_files() == both.server_files() == mine | theirs


def test_watch_stops_when_the_directory_is_removed(both: SyncProcess) -> None:
    both.write("a.md", "1")
    with both.watched() as process:
        wait_until_sync(
            lambda: both.server_files() == {"a.md": "1"}, "the server has a.md alone, with: 1"
        )
        os.rename(both.dir, both.dir.parent / "moved")
        both.dir.mkdir()
        both.editor.put("b.md", "something happens")
        wait_until_sync(lambda: process.poll() is not None, "the process has ended")
    assert process.returncode == 1
    assert both.server_files() == {"a.md": "1", "b.md": "something happens"}
    assert not list(both.dir.iterdir())


def test_key_of_an_agent_syncs_its_own_files(both: SyncProcess, http: httpx.Client) -> None:
    agent = json_of(http.get(f"/v1/agents/{both.editor.agent}"))["id"]
    key = json_of(http.post("/v1/keys", json={"name": "k", "kind": "agent", "agentId": agent}))[
        "key"
    ]
    both.write("notes/mine.md", "mine")
    both.write("SOUL.md", "not for it to say")
    with both.watched("--token", key):
        wait_until_sync(
            lambda: both.server_files() == {"notes/mine.md": "mine"},
            "the server has notes/mine.md alone, with: mine",
        )
        both.editor.put("notes/theirs.md", "theirs")
        wait_until_sync(
            lambda: has(both, "notes/theirs.md", "theirs"), "notes/theirs.md contains: theirs"
        )
    assert (both.dir / STATE).exists()
    assert both.local_files()["SOUL.md"] == "not for it to say"
