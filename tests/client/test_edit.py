"""``carrel edit`` with editors that do what they are told, over the wire."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path as Local

import pytest
from tests.client.cli_runner import Carrel
from tests.client.server_fixture import Hands
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
    """Where texts are while they are edited."""
    room = tmp_path / "drafts"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    return room


def saying(tmp_path: Local, script: str) -> dict[str, str]:
    """An editor: a shell script that is given the file's name."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return {"VISUAL": str(editor), "EDITOR": "false"}


def test_the_raw_text_is_edited_and_saved(
    hands: Hands, carrel: Carrel, tmp_path: Local, drafts: Local
) -> None:
    file = f"{hands.agent}/notes/SOUL.md"
    hands.put("notes/SOUL.md", "I am {{AGENT_NAME}}")
    editor = saying(tmp_path, 'test "${1##*/}" = SOUL.md && printf ", kind" >> "$1"')
    said = carrel.said("edit", file, "--reason", "kindness", **editor)
    assert said.startswith(f"{file}: version 2, agent-override, ")
    assert carrel.said("cat", file, "--raw") == "I am {{AGENT_NAME}}, kind"
    assert carrel.told("log", file)["versions"][0]["reason"] == "kindness"
    assert list(drafts.iterdir()) == []


def test_nothing_changed_means_nothing_written(
    hands: Hands, carrel: Carrel, tmp_path: Local, drafts: Local
) -> None:
    hands.put("a.md", "no newline at the end")
    assert carrel.said("edit", f"{hands.agent}/a.md", **saying(tmp_path, "touch $1")) == (
        "Nothing was changed.\n"
    )
    carrel.said("edit", f"{hands.agent}/new.md", **saying(tmp_path, "true"))
    assert len(carrel.told("log", f"{hands.agent}/a.md")["versions"]) == 1
    assert carrel("cat", f"{hands.agent}/new.md").exit_code == 1
    assert list(drafts.iterdir()) == []


def test_a_file_that_is_not_there_begins_empty(
    hands: Hands, carrel: Carrel, tmp_path: Local
) -> None:
    editor = saying(tmp_path, 'test ! -s "$1" && echo begun > "$1"')
    carrel.said("edit", f"templates/{hands.template}/new.md", **editor)
    assert carrel.said("cat", f"{hands.agent}/new.md") == "begun\n"


@pytest.mark.parametrize("begins", ["ours", None])
def test_on_a_conflict_your_text_is_kept_and_both_are_shown(
    hands: Hands, carrel: Carrel, tmp_path: Local, begins: str | None
) -> None:
    if begins:
        hands.put("a.md", begins)
    script = tmp_path / "meddle.py"
    script.write_text(MEDDLING)
    where = f"{carrel.url}{hands.url('a.md')}"
    command = shlex.join([sys.executable, str(script), where, TOKEN, "mine"])
    done = carrel("edit", f"{hands.agent}/a.md", **saying(tmp_path, f'{command} "$1"'))
    assert done.exit_code == 1
    assert "+theirs\n" in done.stdout
    assert "+mine\n" in done.stdout
    [kept] = re.findall(r"Your text is kept in (\S+)", done.stderr)
    assert Local(kept).read_text() == "mine"
    assert Local(kept).parent.stat().st_mode & 0o077 == 0
    assert carrel.said("cat", f"{hands.agent}/a.md") == "theirs"


def test_what_is_refused_is_kept_too(hands: Hands, carrel: Carrel, tmp_path: Local) -> None:
    editor = saying(tmp_path, 'echo "I am root" > "$1"')
    done = carrel("edit", f"{hands.agent}/USER.md", "--json", **editor)
    told = json.loads(done.stdout)
    assert (done.exit_code, told["ok"]) == (1, False)
    assert Local(told["kept"]).read_text() == "I am root\n"


def test_a_pinned_file_is_not_even_opened_without_saying_so(
    hands: Hands, carrel: Carrel, tmp_path: Local
) -> None:
    file, editor = f"{hands.agent}/GUARDRAILS.md", saying(tmp_path, 'echo mine > "$1"')
    done = carrel("edit", file, **editor)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "is pinned: --accept" in done.stderr
    assert "is pinned" in carrel.told("edit", file, code=1)["problem"]
    assert "agent-override-pinned" in carrel.said("edit", file, "--accept", **editor)


def test_an_editor_that_fails_writes_nothing(
    hands: Hands, carrel: Carrel, tmp_path: Local, drafts: Local
) -> None:
    hands.put("a.md", "ours")
    done = carrel("edit", f"{hands.agent}/a.md", **saying(tmp_path, "exit 3"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Nothing was written." in done.stderr
    assert list(drafts.iterdir()) == []
    done = carrel("edit", f"{hands.agent}/a.md", **saying(tmp_path, 'echo much > "$1"; exit 3'))
    [kept] = re.findall(r"Your text is kept in (\S+)", done.stderr)
    assert Local(kept).read_text() == "much\n"
    assert carrel.said("cat", f"{hands.agent}/a.md") == "ours"
    assert carrel("edit", "no-such-agent/a.md").exit_code == 1
