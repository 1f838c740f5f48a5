"""Property: after any writes and deletions on the server, a directory equals the listing."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path as File

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.client.server_fixture import (
    STATE,
    AgentEditor,
    FaultyTransport,
    client_over,
    read_directory,
)
from tests.support.server_process import ServerProcess

from carrel_client import Client

NAMES = ["a", "A", "b.md", "ä", ".c", "d e"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
TEXTS = st.sampled_from(["", "x", "I am {{AGENT_NAME}}", "one\r\ntwo\r"]) | st.text(max_size=20)
Change = Callable[[AgentEditor, File], None]
WORKSPACES = st.dictionaries(PATHS, TEXTS, max_size=6)


def without_overlaps(files: dict[str, str]) -> dict[str, str]:
    """Drop files below a path that is also a file."""
    return {
        path: text
        for path, text in files.items()
        if not any(path.startswith(f"{other}/") for other in files)
    }


def write_files(editor: AgentEditor, files: dict[str, str], present: set[str]) -> None:
    for path in present - files.keys():
        editor.delete(path)
    for path, text in files.items():
        editor.put(path, text)


def add_unknown_file(editor: AgentEditor, directory: File) -> None:
    (directory / "scribble").write_text("by the agent")


def delete_local_files(editor: AgentEditor, directory: File) -> None:
    for path in list(directory.rglob("*")):
        if path.is_file() and path.name != STATE:
            path.unlink()


def rename(editor: AgentEditor, directory: File) -> None:
    editor.rename("Grace")


def change_nothing(editor: AgentEditor, directory: File) -> None:
    pass


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(
            WORKSPACES,
            st.sampled_from([change_nothing, add_unknown_file, delete_local_files, rename]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_directory_equals_the_listing(
    live: ServerProcess, http: httpx.Client, steps: list[tuple[dict[str, str], Change]]
) -> None:
    editor = AgentEditor.of_new_agent(http)
    present: set[str] = set()
    fingerprint, transport = None, FaultyTransport()
    with tempfile.TemporaryDirectory() as temporary, client_over(transport, live.url) as client:
        directory = File(temporary) / "directory"
        for files, change in steps:
            expected = without_overlaps(files)
            write_files(editor, expected, present)
            present = set(expected)
            before = read_directory(directory)

            result = client.materialize(editor.agent, directory)

            assert read_directory(directory) == editor.served()
            assert result.files == {
                path: hashlib.sha256(text).hexdigest()
                for path, text in read_directory(directory).items()
            }
            assert result.changed == (before != read_directory(directory) or fingerprint is None)
            if fingerprint is not None and before == read_directory(directory):
                assert result.fingerprint == fingerprint
            fingerprint = result.fingerprint
            change(editor, directory)


def test_a_template_file_where_an_agent_has_a_directory_leaves_pulls_working(
    client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a/b", "x")
    refused = editor.http.put(editor.url("a", "templates"), json={"content": "x"})
    assert (refused.status_code, refused.json()["details"]) == (409, {"path": "a/b"})

    client.materialize(editor.agent, directory)

    assert read_directory(directory) == editor.served()
