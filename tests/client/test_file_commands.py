"""``carrel`` commands that read and change files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path as Local

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor

UNREACHABLE_URL = "http://127.0.0.1:1"
WATCHED = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}


def test_files_are_listed_with_their_source(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("notes/a.md", "a")
    editor.put("notes.md", "b")
    editor.put("SOUL.md", "c", "templates")
    assert {"notes/a.md", "notes.md", "SOUL.md"} <= set(carrel.output("ls", editor.agent).split())
    assert carrel.output("ls", f"{editor.agent}/notes") == "notes/a.md\n"
    assert carrel.output("ls", f"templates/{editor.template}") == "SOUL.md\n"
    assert carrel("ls", f"{editor.agent}/note").exit_code == 1
    long = carrel.output("ls", editor.agent, "--long")
    assert re.search(r"^SOUL.md +1 +template +live +20\d\d-\d\d-\d\dT[\d:]+Z$", long, re.M)
    rows = carrel.json("ls", f"agents/{editor.agent}/notes.md")["files"]
    assert [(row["path"], row["source"], row["version"]) for row in rows] == [
        ("notes.md", "agent-override", 1)
    ]


def test_cat_prints_a_file_rendered_raw_or_at_a_version(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    file = f"{editor.agent}/SOUL.md"
    editor.put("SOUL.md", "first\r\n")
    editor.put("SOUL.md", "I am {{AGENT_NAME}}\x1b[31m, no newline")
    assert carrel("cat", file).stdout_bytes == b"I am Ada\x1b[31m, no newline"
    assert carrel("cat", file, "--raw").stdout_bytes.startswith(b"I am {{AGENT_NAME}}")
    assert carrel("cat", file, "--version", 2).stdout_bytes == b"first\r\n"
    assert carrel.json("cat", file, "--raw")["sha256"] == (
        hashlib.sha256(b"I am {{AGENT_NAME}}\x1b[31m, no newline").hexdigest()
    )


def test_terminal_control_characters_of_a_file_are_not_printed(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    editor.put("SOUL.md", "a\x1b]0;owned\x07b\r\n")
    assert (
        carrel.output("cat", f"{editor.agent}/SOUL.md", **WATCHED)
        == "a⟨U+001B⟩]0;owned⟨U+0007⟩b⟨U+000D⟩\n"
    )
    editor.put("SOUL.md", "c\x1b[2J\n")
    output = carrel.output("diff", f"{editor.agent}/SOUL.md", **WATCHED)
    assert "\x1b[32m+c⟨U+001B⟩[2J\x1b[0m\n" in output
    assert "just now" in carrel.output("log", f"{editor.agent}/SOUL.md", **WATCHED)


def test_put_reads_standard_input_or_a_file(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    file, local = f"{editor.agent}/notes/a.md", tmp_path / "a.md"
    output = carrel.output("put", file, input="one\n")
    assert re.fullmatch(rf"{file}: version 1, agent-override, \S+\n", output)
    local.write_bytes(b"two")
    assert carrel.json("put", file, local, "--reason", "for tèsts")["version"] == 2
    assert carrel.output("cat", file) == "two"
    [newest, first] = carrel.json("log", file)["versions"]
    assert (newest["reason"], first["version"], first["size"]) == ("for tèsts", 1, 4)
    assert carrel.output("put", f"templates/{editor.template}/T.md", input="t").endswith("\n")
    assert carrel.output("cat", f"{editor.agent}/T.md") == "t"


def test_put_and_cat_carry_bytes_of_any_type(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    file, content = f"{editor.agent}/docs/a.png", bytes(range(256)) * 2000
    local, copy = tmp_path / "a.png", tmp_path / "copy.png"
    local.write_bytes(content)
    written = carrel.json("put", file, local)
    sha256 = hashlib.sha256(content).hexdigest()
    assert (written["contentType"], written["sha256"]) == ("image/png", sha256)
    assert written["redacted"] is False
    assert carrel("cat", file).stdout_bytes == content
    assert carrel.output("cat", file, "--output", copy) == ""
    assert copy.read_bytes() == content
    copied = carrel.json("cat", file, "-o", copy, "--version", 1)
    assert (copied["size"], copied["sha256"], copied["version"]) == (len(content), sha256, 1)
    assert carrel.json("cat", file)["encoding"] == "base64"
    refused = carrel("cat", file, **WATCHED)
    assert (refused.exit_code, "is not text (image/png)" in refused.stderr) == (1, True)
    edited = carrel("edit", file, EDITOR="true")
    assert (edited.exit_code, "is not text (image/png)" in edited.stderr) == (1, True)
    piped = carrel("put", file, "--type", "image/x-a", "--if-match", "*", input=b"\xff\x00")
    assert piped.exit_code == 0, piped.output
    assert carrel.json("cat", file)["contentType"] == "image/x-a"
    assert carrel("put", file, "--new", input=b"\xff").exit_code == 1
    failed = carrel("cat", file, "-o", tmp_path / "none" / "a.png")
    assert (failed.exit_code, "No such file or directory" in failed.stderr) == (1, True)


def test_put_of_a_large_text_is_streamed_and_says_what_was_redacted(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    workspace = carrel.json("workspaces", "add", "large")["workspaceId"]
    file, local = f"workspaces/{workspace}/a.txt", tmp_path / "a.txt"
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0bC3dE6"
    text = "a line of text\n" * 200_000
    for content, is_redacted in ((text, False), (text + secret, True)):
        local.write_text(content)
        assert carrel.json("put", file, local)["redacted"] is is_redacted
        written = carrel("put", file, input=content)
        assert (written.exit_code, "redacted" in written.stderr) == (0, is_redacted)
        stored = content.replace(secret, "[REDACTED:github]").encode()
        assert len(carrel("cat", file).stdout_bytes) - len(stored) in range(-20, 20)
    assert secret.encode() not in carrel("cat", file).stdout_bytes


def test_put_refuses_a_reason_of_two_lines(editor: AgentEditor, carrel: CarrelCommand) -> None:
    refused = carrel("put", f"{editor.agent}/notes/a.md", "--reason", "two\nlines", input="")
    assert refused.exit_code == 1
    assert carrel("cat", f"{editor.agent}/notes/a.md").exit_code == 1


def test_unmet_condition_writes_nothing(editor: AgentEditor, carrel: CarrelCommand) -> None:
    file = f"{editor.agent}/notes/a.md"
    etag = carrel.json("put", file, "--new", input="one")["etag"]
    assert carrel("put", file, "--new", input="other").exit_code == 1
    assert carrel("put", file, "--if-match", etag.strip('"'), input="two").exit_code == 0
    late = carrel("put", file, "--if-match", etag, input="three")
    assert (late.exit_code, late.stdout) == (1, "")
    assert late.stderr.startswith("Error: ")
    assert carrel.json("put", file, "--if-match", etag, code=1, input="three")["ok"] is False
    assert carrel("rm", file, "--if-match", etag).exit_code == 1
    assert carrel.output("cat", file) == "two"


def test_put_restores_an_earlier_version(editor: AgentEditor, carrel: CarrelCommand) -> None:
    file = f"{editor.agent}/notes/a.md"
    for text in ("one\n", "two\n"):
        carrel.output("put", file, input=text)
    assert carrel.json("put", file, "--from-version", 1)["version"] == 3
    assert carrel.output("cat", file) == "one\n"
    assert carrel("put", file, "--from-version", 9).exit_code == 1
    assert "-two\n+one\n" in carrel.output("diff", file)
    assert "-one\n+two\n" in carrel.output("diff", file, "--from", 1, "--to", 2)
    assert carrel.json("diff", file, "--from", 1, "--to", 3)["diff"] == ""


def test_put_overrides_a_pinned_file_only_with_accept(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    file = f"{editor.agent}/GUARDRAILS.md"
    done = carrel("put", file, input="all is allowed")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "GUARDRAILS.md is pinned: use --accept" in done.stderr
    assert "managed" in carrel("put", f"{editor.agent}/USER.md", input="mine").stderr
    assert carrel.json("put", file, "--accept", input="mine")["source"] == "agent-override-pinned"


def test_redacted_secret_is_reported(editor: AgentEditor, carrel: CarrelCommand) -> None:
    done = carrel("put", f"{editor.agent}/notes/a.md", input=f"AKIA{'Z' * 16}\n")
    assert done.exit_code == 0
    assert "redacted" in done.stderr


def test_rm_prints_the_layer_below(editor: AgentEditor, carrel: CarrelCommand) -> None:
    file = f"{editor.agent}/SOUL.md"
    editor.put("SOUL.md", "ours", "templates")
    editor.put("SOUL.md", "mine")
    assert (
        carrel.output("rm", file, "--reason", "enough")
        == f"{file}: removed; inherited from template\n"
    )
    assert carrel.output("cat", file) == "ours"
    assert carrel("rm", file).exit_code == 1
    layers = [(row["layer"], row["deleted"]) for row in carrel.json("log", file)["versions"]]
    assert layers[:3] == [("template", False), ("agent", True), ("agent", False)]
    carrel.output("put", f"{editor.agent}/own.md", input="x")
    assert carrel.json("rm", f"{editor.agent}/own.md")["source"] is None


def test_log_prints_the_complete_history(editor: AgentEditor, carrel: CarrelCommand) -> None:
    for number in range(5):
        editor.put("notes/a.md", str(number))
    versions = carrel.json("log", f"{editor.agent}/notes/a.md")["versions"]
    assert [row["version"] for row in versions] == [5, 4, 3, 2, 1]
    output = carrel.output("log", f"{editor.agent}/notes/a.md", "--limit", 2)
    assert re.findall(r"^ *(\d)  ", output, re.M) == ["5", "4"]


def test_explain_prints_why_a_layer_wins(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("SOUL.md", "ours", "templates")
    output = carrel.output("explain", f"{editor.agent}/SOUL.md")
    assert re.search(r"^template +\S+ +1 +[0-9a-f]{12}$", output, re.M)
    assert output.endswith("template: template wins, since agent has no such file\n")
    explanation = carrel.json("explain", f"{editor.agent}/SOUL.md")
    assert [layer["kind"] for layer in explanation["layers"]] == ["agent", "template", "defaults"]


@pytest.mark.parametrize("command", ["ls", "cat", "put", "rm", "log", "diff", "explain"])
def test_errors_are_one_line_and_an_exit_code(command: str, carrel: CarrelCommand) -> None:
    target = "no-such-agent" if command == "ls" else "no-such-agent/a.md"
    none = carrel(command, target, input="")
    assert (none.exit_code, none.stdout) == (1, "")
    assert none.stderr == "Error: no such agent: no-such-agent\n"
    assert carrel.json(command, target, code=1, input="") == {
        "ok": False,
        "problem": "no such agent: no-such-agent",
    }
    assert carrel(command, "finn/../a.md", input="").exit_code == 2
    assert carrel(command, target, input="", CARREL_TOKEN="").exit_code == 1


def test_unreachable_server_is_reported(carrel: CarrelCommand) -> None:
    done = carrel("ls", "finn", "--url", UNREACHABLE_URL)
    assert done.exit_code == 1
    assert f"cannot reach the server at {UNREACHABLE_URL}" in done.stderr
    assert carrel("cat", "finn").exit_code == 2
    assert carrel("put", "finn/a.md", "/no/such/file").exit_code == 1
    assert carrel("put", "finn/a.md", "--new", "--if-match", "*", input="").exit_code == 2


def test_agents_templates_and_people_are_listed(editor: AgentEditor, carrel: CarrelCommand) -> None:
    assert re.search(rf"^{editor.agent} +Ada +{editor.template} ", carrel.output("agents"), re.M)
    [mine] = carrel.json("agents", "--template", editor.template)["agents"]
    assert (mine["slug"], mine["name"]) == (editor.agent, "Ada")
    assert editor.template in [row["slug"] for row in carrel.json("templates")["templates"]]
    assert re.search(r"^name +email +role", carrel.output("people"))
    assert "owner" in [row["role"] for row in carrel.json("people")["people"]]


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
    repeated = carrel("mv", "workspaces/team/a.md", "workspaces/team/b.md")
    assert (repeated.exit_code, "leave out workspaces/team/" in repeated.stderr) == (2, True)
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
    assert carrel.json("ls", f"{agent}/notes/empty", "-d") == {"files": []}
    [row] = carrel.json("ls", f"{agent}/notes/a.md", "-d")["files"]
    assert (row["type"], row["path"]) == ("file", "notes/a.md")
    absent = carrel("ls", f"{agent}/absent", "-d")
    assert (absent.exit_code, "no such file or directory" in absent.stderr) == (1, True)

    output = carrel.output("rm", "-r", f"{agent}/notes")
    assert output == f"{agent}/notes/a.md: removed\n{agent}/notes/empty: removed\n"
    assert carrel("rm", "-r", f"{agent}/notes").exit_code == 1
    assert carrel("rm", "-r", f"{agent}/notes", "--if-match", "*").exit_code == 2
