"""``carrel commit``: many changes from JSON, applied together or not at all."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path as Local
from typing import Any

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor


def commit_text(*writes: dict[str, Any], **more: Any) -> str:
    return json.dumps({"writes": writes, **more})


def test_a_commit_puts_moves_copies_and_deletes(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    agent, file = editor.agent, tmp_path / "commit.json"
    for name in ("old", "gone", "source"):
        editor.put(f"notes/{name}.md", name)
    binary = b"\xff\xd8\x00"
    writes = (
        {"op": "put", "path": "notes/new.md", "content": "new\n", "ifNoneMatch": "*"},
        {"op": "put", "path": "notes/a.jpg", "content": b64encode(binary).decode()}
        | {"encoding": "base64"},
        {"op": "move", "path": "notes/old.md", "to": "notes/moved.md", "ifMatch": "*"},
        {"op": "copy", "path": "notes/source.md", "to": "notes/copy.md"},
        {"op": "delete", "path": "notes/gone.md"},
    )
    file.write_text(commit_text(*writes, reason="tidy up"))
    assert carrel.output("commit", agent, file).splitlines() == [
        "notes/new.md: version 1",
        "notes/a.jpg: version 1",
        "notes/old.md -> notes/moved.md: version 1",
        "notes/source.md -> notes/copy.md: version 1",
        "notes/gone.md: removed",
    ]
    assert carrel("cat", f"{agent}/notes/a.jpg").stdout_bytes == binary
    assert carrel.json("log", f"{agent}/notes/new.md")["versions"][0]["reason"] == "tidy up"
    assert carrel("cat", f"{agent}/notes/gone.md").exit_code == 1


def test_a_refused_commit_names_every_change_that_failed(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    editor.put("notes/a.md", "a")
    text = commit_text(
        {"op": "put", "path": "notes/new.md", "content": "new"},
        {"op": "put", "path": "notes/a.md", "content": "b", "ifNoneMatch": "*"},
        {"op": "delete", "path": "notes/gone.md", "ifMatch": "*"},
    )
    refused = carrel("commit", editor.agent, input=text)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.splitlines() == [
        "Error: notes/a.md already exists",
        "Error: notes/gone.md does not exist",
    ]
    failed = carrel.json("commit", editor.agent, input=text, code=1)["failed"]
    assert [change["index"] for change in failed] == [1, 2]
    assert carrel("cat", f"{editor.agent}/notes/new.md").exit_code == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[]", "expected an object with `writes`"),
        ('{"writes": [], "files": []}', "unknown field: files"),
        (commit_text({"op": "rename", "path": "a"}), "writes[0]: op must be one of put,"),
        (commit_text({"op": "put", "path": "a"}), "writes[0]: put needs content"),
        (commit_text({"op": "move", "path": "a"}), "writes[0]: move needs to"),
        (commit_text({"op": "delete", "path": "a", "content": ""}), "delete has no content"),
        (commit_text({"op": "put", "path": "a", "if_match": "*"}), "put has no if_match"),
        (commit_text({"op": "put", "path": "a", "content": "%", "encoding": "base64"}), "base64"),
        (commit_text({"op": "put", "path": 1, "content": "x"}), "invalid body"),
        (commit_text(), "invalid body"),
    ],
)
def test_what_is_no_commit_is_refused_with_its_place(
    editor: AgentEditor, carrel: CarrelCommand, text: str, problem: str
) -> None:
    refused = carrel("commit", editor.agent, input=text)
    assert (refused.exit_code, problem in refused.stderr) == (1, True), refused.stderr
