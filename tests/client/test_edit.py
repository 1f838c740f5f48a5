"""``carrel edit`` with scripted editors, against a running server."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path as Local

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor
from tests.support.server_process import TOKEN

MEDDLING = """
import sys, urllib.request as web
url, token, text, file = sys.argv[1:]
head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
web.urlopen(web.Request(url, data=b'{"content": "theirs"}', headers=head, method="PUT")).read()
open(file, "w").write(text)
"""


@pytest.fixture(autouse=True)
def drafts(tmp_path: Local, monkeypatch: pytest.MonkeyPatch) -> Local:
    """The directory of texts during an edit."""
    directory = tmp_path / "drafts"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def editor_script(tmp_path: Local, script: str) -> dict[str, str]:
    """An editor: a shell script that gets the file's name."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return {"VISUAL": str(editor), "EDITOR": "false"}


def test_raw_text_is_edited_and_saved(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local, drafts: Local
) -> None:
    file = f"{editor.agent}/notes/SOUL.md"
    editor.put("notes/SOUL.md", "I am {{AGENT_NAME}}")
    environment = editor_script(tmp_path, 'test "${1##*/}" = SOUL.md && printf ", kind" >> "$1"')
    output = carrel.output("edit", file, "--reason", "kindness", **environment)
    assert output.startswith(f"{file}: version 2, agent-override, ")
    assert carrel.output("cat", file, "--raw") == "I am {{AGENT_NAME}}, kind"
    assert carrel.json("log", file)["versions"][0]["reason"] == "kindness"
    assert list(drafts.iterdir()) == []


def test_unchanged_text_is_not_written(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local, drafts: Local
) -> None:
    editor.put("a.md", "no newline at the end")
    assert carrel.output("edit", f"{editor.agent}/a.md", **editor_script(tmp_path, "touch $1")) == (
        "Nothing changed.\n"
    )
    carrel.output("edit", f"{editor.agent}/new.md", **editor_script(tmp_path, "true"))
    assert len(carrel.json("log", f"{editor.agent}/a.md")["versions"]) == 1
    assert carrel("cat", f"{editor.agent}/new.md").exit_code == 1
    assert list(drafts.iterdir()) == []


def test_absent_file_begins_empty(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    environment = editor_script(tmp_path, 'test ! -s "$1" && echo begun > "$1"')
    carrel.output("edit", f"templates/{editor.template}/new.md", **environment)
    assert carrel.output("cat", f"{editor.agent}/new.md") == "begun\n"


@pytest.mark.parametrize("begins", ["ours", None])
def test_conflict_keeps_the_edited_text_and_prints_both(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local, begins: str | None
) -> None:
    if begins:
        editor.put("a.md", begins)
    script = tmp_path / "meddle.py"
    script.write_text(MEDDLING)
    url = f"{carrel.url}{editor.url('a.md')}"
    command = shlex.join([sys.executable, str(script), url, TOKEN, "mine"])
    done = carrel("edit", f"{editor.agent}/a.md", **editor_script(tmp_path, f'{command} "$1"'))
    assert done.exit_code == 1
    assert "+theirs\n" in done.stdout
    assert "+mine\n" in done.stdout
    [saved_path] = re.findall(r"Your text is kept in (\S+)", done.stderr)
    assert Local(saved_path).read_text() == "mine"
    assert Local(saved_path).parent.stat().st_mode & 0o077 == 0
    assert carrel.output("cat", f"{editor.agent}/a.md") == "theirs"


def test_refused_text_is_kept(editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local) -> None:
    environment = editor_script(tmp_path, 'echo "I am root" > "$1"')
    done = carrel("edit", f"{editor.agent}/USER.md", "--json", **environment)
    report = json.loads(done.stdout)
    assert (done.exit_code, report["ok"]) == (1, False)
    assert Local(report["kept"]).read_text() == "I am root\n"


def test_pinned_file_is_opened_only_with_accept(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    file, environment = f"{editor.agent}/GUARDRAILS.md", editor_script(tmp_path, 'echo mine > "$1"')
    done = carrel("edit", file, **environment)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "is pinned: use --accept" in done.stderr
    assert "is pinned" in carrel.json("edit", file, code=1)["problem"]
    assert "agent-override-pinned" in carrel.output("edit", file, "--accept", **environment)


def test_failing_editor_writes_nothing(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local, drafts: Local
) -> None:
    editor.put("a.md", "ours")
    done = carrel("edit", f"{editor.agent}/a.md", **editor_script(tmp_path, "exit 3"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Nothing was written." in done.stderr
    assert list(drafts.iterdir()) == []
    done = carrel(
        "edit", f"{editor.agent}/a.md", **editor_script(tmp_path, 'echo much > "$1"; exit 3')
    )
    [saved_path] = re.findall(r"Your text is kept in (\S+)", done.stderr)
    assert Local(saved_path).read_text() == "much\n"
    assert carrel.output("cat", f"{editor.agent}/a.md") == "ours"
    assert carrel("edit", "no-such-agent/a.md").exit_code == 1
