"""``carrel mv``, ``cp``, ``mkdir``, ``rm -r`` and ``ls -d``."""

from __future__ import annotations

from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor


def test_mv_moves_a_file_and_log_goes_on_before_the_move(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    editor.put("notes/old.md", "one")
    agent = editor.agent
    before = carrel.json("ls", f"{agent}/notes/old.md")["files"][0]
    output = carrel.output("mv", f"{agent}/notes/old.md", "notes/new.md", "--reason", "rename")
    assert output == "notes/old.md -> notes/new.md: version 1\n"
    newest, first = carrel.json("log", f"{agent}/notes/new.md")["versions"]
    assert newest["source"] == {"kind": "move", "path": "notes/old.md", "version": 1}
    assert (newest["fileId"], first["path"]) == (before["fileId"], "notes/old.md")
    table = carrel.output("log", f"{agent}/notes/new.md")
    assert "moved from notes/old.md version 1" in table
    assert "at notes/old.md" in table


def test_mv_refuses_stale_etags_replaced_targets_and_absent_files(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    editor.put("notes/a.md", "a")
    editor.put("notes/b.md", "b")
    agent = editor.agent
    assert carrel("mv", f"{agent}/notes/a.md", "notes/c.md", "--if-match", "v9").exit_code == 1
    assert carrel("mv", f"{agent}/notes/a.md", "notes/b.md", "--new").exit_code == 1
    assert carrel("mv", f"{agent}/notes/absent.md", "notes/c.md").exit_code == 1
    assert carrel("mv", f"{agent}/notes/a.md", "../c.md").exit_code == 2
    assert carrel.output("cat", f"{agent}/notes/a.md") == "a"


def test_cp_copies_a_directory_into_another(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("notes/a.md", "a")
    editor.put("notes/deep/b.md", "b")
    agent = editor.agent
    result = carrel.json("cp", f"{agent}/notes", "copies/")
    assert [change["path"] for change in result["changes"]] == [
        "copies/notes/a.md",
        "copies/notes/deep/b.md",
    ]
    assert carrel.output("cat", f"{agent}/copies/notes/deep/b.md") == "b"


def test_directories_are_made_listed_and_removed(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    editor.put("notes/a.md", "12345")
    agent = editor.agent
    assert carrel.output("mkdir", f"{agent}/notes/empty") == f"{agent}/notes/empty/: created\n"
    again = carrel.output("mkdir", f"{agent}/notes/empty")
    assert again == f"{agent}/notes/empty/: exists already\n"
    rows = carrel.json("ls", f"{agent}/notes", "-d")["files"]
    assert [(row["path"], row["type"], row["size"]) for row in rows] == [
        ("notes/a.md", "file", 5),
        ("notes/empty", "directory", 0),
    ]
    assert "notes/empty/" in carrel.output("ls", f"{agent}/notes", "-d")
    assert "notes/" in carrel.output("ls", agent, "-d")

    output = carrel.output("rm", "-r", f"{agent}/notes")
    assert output == f"{agent}/notes/a.md: removed\n{agent}/notes/empty: removed\n"
    assert carrel("rm", "-r", f"{agent}/notes").exit_code == 1
    assert carrel("rm", "-r", f"{agent}/notes", "--if-match", "*").exit_code == 2
