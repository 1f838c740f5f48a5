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
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving
from tests.support.wait import wait_until_sync


@pytest.fixture
def pair(live: ServerProcess, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    return SyncProcess(live, editor, tmp_path / "synced")


def versions(pair: SyncProcess, path: str) -> int:
    return max((row["version"] for row in pair.rows() if row["path"] == path), default=0)


def has_local(pair: SyncProcess, path: str, text: str) -> bool:
    try:
        return (pair.dir / path).read_text("utf-8") == text
    except FileNotFoundError:
        return False


def has_remote(pair: SyncProcess, path: str, text: str) -> bool:
    return pair.server_files().get(path) == text


def has_files(pair: SyncProcess, enough: int) -> bool:
    return len(pair.server_files()) >= enough or len(pair.local_files()) >= enough


def has_count(items: list[tuple[str, str]], item: tuple[str, str], enough: int) -> bool:
    return items.count(item) >= enough


def test_watch_copies_changes_of_both_sides(pair: SyncProcess) -> None:
    with pair.watched() as process:
        pair.write("notes/mine.md", "mine")
        wait_until_sync(
            lambda: pair.server_files() == {"notes/mine.md": "mine"},
            "the server has notes/mine.md alone, with: mine",
        )
        pair.editor.put("notes/theirs.md", "theirs")
        wait_until_sync(
            lambda: has_local(pair, "notes/theirs.md", "theirs"), "notes/theirs.md contains: theirs"
        )
        pair.write("notes/theirs.md", "edited here")
        wait_until_sync(
            lambda: pair.server_files().get("notes/theirs.md") == "edited here",
            "the server's notes/theirs.md contains: edited here",
        )
        pair.editor.delete("notes/mine.md")
        wait_until_sync(
            lambda: not (pair.dir / "notes/mine.md").exists(), "notes/mine.md is deleted"
        )
        (pair.dir / "notes/theirs.md").unlink()
        wait_until_sync(lambda: pair.server_files() == {}, "the server has no file")
    assert process.returncode == 0


def test_saves_by_renaming_or_in_pieces_make_one_version(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    with pair.watched("--settle", "2"):
        wait_until_sync(
            lambda: pair.server_files() == {"a.md": "1"}, "the server has a.md alone, with: 1"
        )
        # Like vim: rename the old file, write the new one, remove the old one.
        file = pair.dir / "a.md"
        os.rename(file, pair.dir / "a.md~")
        file.write_text("2")
        (pair.dir / "a.md~").unlink()
        wait_until_sync(
            lambda: pair.server_files() == {"a.md": "2"}, "the server has a.md alone, with: 2"
        )
        assert versions(pair, "a.md") == 2
        # Like other editors: replace the old file with a complete new one.
        pair.write(".a.md.new", "3")
        os.rename(pair.dir / ".a.md.new", file)
        wait_until_sync(
            lambda: pair.server_files() == {"a.md": "3"}, "the server has a.md alone, with: 3"
        )
        assert versions(pair, "a.md") == 3
        # Like a slow program: empty the file, then fill it in pieces.
        with file.open("w") as slow:
            for _ in range(200):
                slow.write("4")
                slow.flush()
        wait_until_sync(
            lambda: pair.server_files() == {"a.md": "4" * 200},
            "the server has a.md alone, with the text",
        )
        assert versions(pair, "a.md") == 4


def test_own_writes_cause_no_further_pass(pair: SyncProcess) -> None:
    changes: list[tuple[str, str]] = []

    def collect(lines: IO[str]) -> None:
        for line in lines:
            report = json.loads(line)
            changes.extend((kind, path) for kind in ("sent", "received") for path in report[kind])

    # Each report is awaited, since two writes between reports would be one change.
    with pair.watched() as process:
        assert process.stdout
        reader = threading.Thread(target=collect, args=(process.stdout,))
        reader.start()
        for number in range(1, 4):
            pair.editor.put("a.md", f"theirs {number}")
            wait_until_sync(
                partial(has_count, changes, ("received", "a.md"), number),
                f"a.md is received {number} times",
            )
            assert has_local(pair, "a.md", f"theirs {number}")
            pair.write("a.md", f"mine {number}")
            wait_until_sync(
                partial(has_count, changes, ("sent", "a.md"), number),
                f"a.md is sent {number} times",
            )
            assert has_remote(pair, "a.md", f"mine {number}")
        pair.write("last.md", "last")
        wait_until_sync(lambda: ("sent", "last.md") in changes, "last.md is sent")
        assert versions(pair, "a.md") == 6
        process.send_signal(signal.SIGINT)
        reader.join(60)
    assert len([path for _, path in changes if path == "a.md"]) == 6


def test_conflict_is_reported_once_and_sync_continues_when_resolved(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    pair.editor.put("a.md", "theirs")
    with pair.watched() as process:
        wait_until_sync(lambda: len(pair.local_files()) == 2, "there are two local files")
        [copy] = [path for path in pair.local_files() if path != "a.md"]
        pair.write("b.md", "another")
        wait_until_sync(lambda: "b.md" in pair.server_files(), "the server has b.md")
        assert (pair.server_files()["a.md"], has_local(pair, "a.md", "mine")) == ("theirs", True)
        (pair.dir / copy).unlink()
        wait_until_sync(
            lambda: pair.server_files()["a.md"] == "mine", "the server's a.md contains: mine"
        )
    assert process.returncode == 0


def test_watch_survives_a_restart_of_the_server(tmp_path: File) -> None:
    data = tmp_path / "store"
    with serving(data) as first:
        port = first.url.rpartition(":")[2]
        with httpx.Client(base_url=first.url, headers=_owner(), timeout=60, verify=PLAIN) as http:
            pair = SyncProcess(first, AgentEditor.of_new_agent(http), tmp_path / "synced")
            with pair.watched() as process:
                pair.write("a.md", "1")
                wait_until_sync(
                    lambda: pair.server_files() == {"a.md": "1"},
                    "the server has a.md alone, with: 1",
                )
                first.kill()
                pair.write("a.md", "written during the outage")
                with serving(data, port=port):
                    wait_until_sync(
                        lambda: _text(pair) == {"a.md": "written during the outage"},
                        "the server has what was written meanwhile",
                    )
                    pair.editor.put("b.md", "heard again")
                    wait_until_sync(
                        lambda: has_local(pair, "b.md", "heard again"), "b.md contains: heard again"
                    )
            assert process.returncode == 0


def _owner() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


def _text(pair: SyncProcess) -> dict[str, str]:
    try:
        return pair.server_files()
    except httpx.TransportError:
        return {}


def test_second_watch_of_a_directory_is_refused(pair: SyncProcess) -> None:
    with pair.watched():
        pair.write("a.md", "1")
        wait_until_sync(
            lambda: pair.server_files() == {"a.md": "1"}, "the server has a.md alone, with: 1"
        )
        assert "is being synced by another process" in pair.sync()["problem"]


def test_sync_killed_at_any_moment_loses_nothing(pair: SyncProcess) -> None:
    mine = {f"mine-{number}.md": f"mine {number}" for number in range(40)}
    theirs = {f"theirs-{number}.md": f"theirs {number}" for number in range(40)}
    for path, text in theirs.items():
        pair.editor.put(path, text)
    for path, text in mine.items():
        pair.write(path, text)
    for enough in (45, 60, 75):
        with pair.watched() as process:
            wait_until_sync(partial(has_files, pair, enough), f"{enough} files are on one side")
            process.kill()
            process.wait()
    assert pair.sync()["ok"]
    assert pair.local_files() == pair.server_files() == mine | theirs


def test_watch_stops_when_the_directory_is_removed(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    with pair.watched() as process:
        wait_until_sync(
            lambda: pair.server_files() == {"a.md": "1"}, "the server has a.md alone, with: 1"
        )
        os.rename(pair.dir, pair.dir.parent / "moved")
        pair.dir.mkdir()
        pair.editor.put("b.md", "something happens")
        wait_until_sync(lambda: process.poll() is not None, "the process has ended")
    assert process.returncode == 1
    assert pair.server_files() == {"a.md": "1", "b.md": "something happens"}
    assert not list(pair.dir.iterdir())


def test_key_of_an_agent_syncs_its_own_files(pair: SyncProcess, http: httpx.Client) -> None:
    agent = json_of(http.get(f"/v1/agents/{pair.editor.agent}"))["id"]
    key = json_of(http.post("/v1/keys", json={"name": "k", "kind": "agent", "agentId": agent}))[
        "key"
    ]
    pair.write("notes/mine.md", "mine")
    pair.write("SOUL.md", "not for it to say")
    with pair.watched("--token", key):
        wait_until_sync(
            lambda: pair.server_files() == {"notes/mine.md": "mine"},
            "the server has notes/mine.md alone, with: mine",
        )
        pair.editor.put("notes/theirs.md", "theirs")
        wait_until_sync(
            lambda: has_local(pair, "notes/theirs.md", "theirs"), "notes/theirs.md contains: theirs"
        )
    assert (pair.dir / STATE).exists()
    assert pair.local_files()["SOUL.md"] == "not for it to say"
