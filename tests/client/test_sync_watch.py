"""``carrel sync`` that goes on: both sides are watched, through editors' saves and lost servers."""

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
from tests.client.server_fixture import Hands, made
from tests.client.sync_process import STATE, Synced, wait_for
from tests.support.server_process import PLAIN, TOKEN, Live, serving


@pytest.fixture
def both(live: Live, hands: Hands, tmp_path: File) -> Synced:
    return Synced(live, hands, tmp_path / "desk")


def versions(both: Synced, path: str) -> int:
    return max((row["version"] for row in both.rows() if row["path"] == path), default=0)


def has(both: Synced, path: str, text: str) -> bool:
    try:
        return (both.dir / path).read_text("utf-8") == text
    except FileNotFoundError:
        return False


def is_there(both: Synced, path: str, text: str) -> bool:
    return both.there().get(path) == text


def moved(both: Synced, enough: int) -> bool:
    return len(both.there()) >= enough or len(both.here()) >= enough


def reached(told: list[tuple[str, str]], what: tuple[str, str], enough: int) -> bool:
    return told.count(what) >= enough


def test_what_happens_on_either_side_comes_to_the_other(both: Synced) -> None:
    with both.watched() as process:
        both.write("notes/mine.md", "mine")
        wait_for(lambda: both.there() == {"notes/mine.md": "mine"})
        both.hands.put("notes/theirs.md", "theirs")
        wait_for(lambda: has(both, "notes/theirs.md", "theirs"))
        both.write("notes/theirs.md", "edited here")
        wait_for(lambda: both.there().get("notes/theirs.md") == "edited here")
        both.hands.delete("notes/mine.md")
        wait_for(lambda: not (both.dir / "notes/mine.md").exists())
        (both.dir / "notes/theirs.md").unlink()
        wait_for(lambda: both.there() == {})
    assert process.returncode == 0


def test_editors_that_save_by_renaming_and_in_pieces_make_one_version_each(both: Synced) -> None:
    both.write("a.md", "1")
    with both.watched("--settle", "2"):
        wait_for(lambda: both.there() == {"a.md": "1"})
        # Like vim: the old one is moved away, the new one is written, the old one is removed.
        file = both.dir / "a.md"
        os.rename(file, both.dir / "a.md~")
        file.write_text("2")
        (both.dir / "a.md~").unlink()
        wait_for(lambda: both.there() == {"a.md": "2"})
        assert versions(both, "a.md") == 2
        # Like others: a whole new file takes the place of the old.
        both.write(".a.md.new", "3")
        os.rename(both.dir / ".a.md.new", file)
        wait_for(lambda: both.there() == {"a.md": "3"})
        assert versions(both, "a.md") == 3
        # Like a program that is slow: emptied first, and then filled bit by bit.
        with file.open("w") as slow:
            for _ in range(200):
                slow.write("4")
                slow.flush()
        wait_for(lambda: both.there() == {"a.md": "4" * 200})
        assert versions(both, "a.md") == 4


def test_what_it_writes_itself_is_not_news_to_it(both: Synced) -> None:
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
            both.hands.put("a.md", f"theirs {number}")
            wait_for(partial(reached, told, ("received", "a.md"), number))
            assert has(both, "a.md", f"theirs {number}")
            both.write("a.md", f"mine {number}")
            wait_for(partial(reached, told, ("sent", "a.md"), number))
            assert is_there(both, "a.md", f"mine {number}")
        both.write("last.md", "last")
        wait_for(lambda: ("sent", "last.md") in told)
        assert versions(both, "a.md") == 6
        process.send_signal(signal.SIGINT)
        ears.join(60)
    assert len([path for _, path in told if path == "a.md"]) == 6


def test_a_conflict_is_told_once_and_goes_on_when_it_is_resolved(both: Synced) -> None:
    both.write("a.md", "mine")
    both.hands.put("a.md", "theirs")
    with both.watched() as process:
        wait_for(lambda: len(both.here()) == 2)
        [copy] = [path for path in both.here() if path != "a.md"]
        both.write("b.md", "another")
        wait_for(lambda: "b.md" in both.there())
        assert (both.there()["a.md"], has(both, "a.md", "mine")) == ("theirs", True)
        (both.dir / copy).unlink()
        wait_for(lambda: both.there()["a.md"] == "mine")
    assert process.returncode == 0


def test_it_lives_through_a_server_that_comes_back(tmp_path: File) -> None:
    data = tmp_path / "store"
    with serving(data) as first:
        port = first.url.rpartition(":")[2]
        with httpx.Client(base_url=first.url, headers=_owner(), timeout=60, verify=PLAIN) as http:
            both = Synced(first, Hands.of_new_agent(http), tmp_path / "desk")
            with both.watched() as process:
                both.write("a.md", "1")
                wait_for(lambda: both.there() == {"a.md": "1"})
                first.kill()
                both.write("a.md", "written while nobody answered")
                with serving(data, port=port):
                    wait_for(lambda: _text(both) == {"a.md": "written while nobody answered"})
                    both.hands.put("b.md", "heard again")
                    wait_for(lambda: has(both, "b.md", "heard again"))
            assert process.returncode == 0


def _owner() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


def _text(both: Synced) -> dict[str, str]:
    try:
        return both.there()
    except httpx.TransportError:
        return {}


def test_a_second_one_on_the_same_directory_is_refused(both: Synced) -> None:
    with both.watched():
        both.write("a.md", "1")
        wait_for(lambda: both.there() == {"a.md": "1"})
        assert "is being synced by another" in both.sync()["problem"]


def test_killed_at_any_moment_it_is_taken_up_and_nothing_is_lost(both: Synced) -> None:
    mine = {f"mine-{number}.md": f"mine {number}" for number in range(40)}
    theirs = {f"theirs-{number}.md": f"theirs {number}" for number in range(40)}
    for path, text in theirs.items():
        both.hands.put(path, text)
    for path, text in mine.items():
        both.write(path, text)
    for enough in (45, 60, 75):
        with both.watched() as process:
            wait_for(partial(moved, both, enough))
            process.kill()
            process.wait()
    assert both.sync()["ok"]
    assert both.here() == both.there() == mine | theirs


def test_it_stops_when_the_directory_is_taken_away_and_removes_nothing(both: Synced) -> None:
    both.write("a.md", "1")
    with both.watched() as process:
        wait_for(lambda: both.there() == {"a.md": "1"})
        os.rename(both.dir, both.dir.parent / "moved")
        both.dir.mkdir()
        both.hands.put("b.md", "something happens")
        wait_for(lambda: process.poll() is not None)
    assert process.returncode == 1
    assert both.there() == {"a.md": "1", "b.md": "something happens"}
    assert not list(both.dir.iterdir())


def test_an_agent_syncs_its_own_files_with_its_own_key(both: Synced, http: httpx.Client) -> None:
    agent = made(http.get(f"/v1/agents/{both.hands.agent}"))["id"]
    key = made(http.post("/v1/keys", json={"name": "k", "kind": "agent", "agentId": agent}))["key"]
    both.write("notes/mine.md", "mine")
    both.write("SOUL.md", "not for it to say")
    with both.watched("--token", key):
        wait_for(lambda: both.there() == {"notes/mine.md": "mine"})
        both.hands.put("notes/theirs.md", "theirs")
        wait_for(lambda: has(both, "notes/theirs.md", "theirs"))
    assert (both.dir / STATE).exists()
    assert both.here()["SOUL.md"] == "not for it to say"
