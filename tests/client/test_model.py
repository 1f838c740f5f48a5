"""Whatever is written and removed on the server, a directory is its listing, exactly."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path as File

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.client.server_fixture import STATE, Hands, Wire, held, over
from tests.support.server_process import Live

from carrel_client import Client, UnsafePath

NAMES = ["a", "A", "b.md", "ä", ".c", "d e"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
TEXTS = st.sampled_from(["", "x", "I am {{AGENT_NAME}}", "one\r\ntwo\r"]) | st.text(max_size=20)
Deed = Callable[[Hands, File], None]
WORKSPACES = st.dictionaries(PATHS, TEXTS, max_size=6)


def without_overlaps(files: dict[str, str]) -> dict[str, str]:
    """Less what is within what is a file."""
    return {
        path: text
        for path, text in files.items()
        if not any(path.startswith(f"{other}/") for other in files)
    }


def arrange(hands: Hands, wanted: dict[str, str], present: set[str]) -> None:
    for path in present - wanted.keys():
        hands.delete(path)
    for path, text in wanted.items():
        hands.put(path, text)


def scribble(hands: Hands, desk: File) -> None:
    (desk / "scribble").write_text("by the agent")


def lose(hands: Hands, desk: File) -> None:
    for path in list(desk.rglob("*")):
        if path.is_file() and path.name != STATE:
            path.unlink()


def rename(hands: Hands, desk: File) -> None:
    hands.rename("Grace")


def nothing(hands: Hands, desk: File) -> None:
    """Leave all as it is."""


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(WORKSPACES, st.sampled_from([nothing, scribble, lose, rename])),
        min_size=1,
        max_size=4,
    )
)
def test_a_directory_is_the_listing(
    live: Live, http: httpx.Client, steps: list[tuple[dict[str, str], Deed]]
) -> None:
    hands = Hands.of_new_agent(http)
    present: set[str] = set()
    fingerprint, wire = None, Wire()
    with tempfile.TemporaryDirectory() as room, over(wire, live.url) as client:
        desk = File(room) / "desk"
        for files, entry in steps:
            wanted = without_overlaps(files)
            arrange(hands, wanted, present)
            present = set(wanted)
            before = held(desk)

            result = client.materialize(hands.agent, desk)

            assert held(desk) == hands.served()
            assert result.files == {
                path: hashlib.sha256(text).hexdigest() for path, text in held(desk).items()
            }
            assert result.changed == (before != held(desk) or fingerprint is None)
            if fingerprint is not None and before == held(desk):
                assert result.fingerprint == fingerprint
            fingerprint = result.fingerprint
            entry(hands, desk)


def test_what_no_directory_can_hold_is_refused_by_name(
    client: Client, hands: Hands, desk: File
) -> None:
    hands.put("a/b", "x")
    client.materialize(hands.agent, desk)
    before = held(desk)
    hands.put("a", "x", of="templates")

    with pytest.raises(UnsafePath, match="'a"):
        client.materialize(hands.agent, desk)

    assert held(desk) == before
