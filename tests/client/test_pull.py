"""``carrel pull`` at a terminal and in scripts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from contextlib import chdir
from pathlib import Path as File
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner
from tests.client.cli_runner import run_command
from tests.client.server_fixture import AgentEditor, read_directory
from tests.support.server_process import TOKEN, ServerProcess, command, environment

from carrel.cli import main

UNREACHABLE_URL = "http://127.0.0.1:1"
PROGRAM = "from carrel_client import requests as asking; asking.FIRST_PAUSE_SECONDS = 0.001\n"
PROGRAM += "from carrel.cli import main; main()"


def pull(*arguments: object, cwd: File | None = None, **settings: str) -> CompletedProcess[str]:
    with chdir(cwd or File.cwd()):
        return run_command("pull", *arguments, **settings)


@pytest.fixture
def connection(live: ServerProcess) -> dict[str, Any]:
    return {"url": live.url, "token": TOKEN}


def test_pull_writes_a_directory_and_reports_it(
    editor: AgentEditor, directory: File, connection: dict[str, Any]
) -> None:
    editor.put("notes/a.md", "x")

    first, second = (pull(editor.agent, directory, **connection) for _ in range(2))

    count = len(editor.served())
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == f"{directory}: {count} files, written\n"
    assert first.stderr == f"writing files: {count} of {count}\n"
    assert (second.stdout, second.stderr) == (f"{directory}: {count} files, unchanged\n", "")
    assert read_directory(directory) == editor.served()


def test_pull_prints_json(editor: AgentEditor, directory: File, connection: dict[str, Any]) -> None:
    editor.put("a.md", "x")

    report: dict[str, Any] = json.loads(
        pull(editor.agent, directory, "--json", **connection).stdout
    )

    assert set(report) == {"ok", "directory", "changed", "stale", "fingerprint", "etag", "files"}
    assert (report["ok"], report["directory"], report["changed"]) == (True, str(directory), True)
    assert report["files"].keys() == editor.served().keys()


def test_options_override_settings(
    live: ServerProcess, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x")
    done = pull(
        editor.agent,
        directory,
        "--url",
        live.url,
        "--token",
        TOKEN,
        url=UNREACHABLE_URL,
        token="wrong",
    )
    assert done.returncode == 0
    assert read_directory(directory) == editor.served()


def test_failed_pull_is_one_line_and_leaves_the_files(
    editor: AgentEditor, directory: File, connection: dict[str, Any]
) -> None:
    editor.put("a.md", "x")
    other = directory.parent / "other"
    other.mkdir(parents=True)
    (other / "mine").write_text("mine")
    for done, text in (
        (
            pull(editor.agent, directory, **connection | {"url": UNREACHABLE_URL}),
            f"cannot reach the server at {UNREACHABLE_URL}",
        ),
        (
            pull(editor.agent, directory, **connection | {"url": "carrel"}),
            "is not the URL of a server",
        ),
        (pull(editor.agent, directory, **connection | {"token": "wrong"}), "credential"),
        (pull(editor.agent, directory, **connection | {"token": ""}), "no API token"),
        (pull("unknown", directory, **connection), "no such agent: unknown"),
        (pull(editor.agent, other, **connection), "is not empty"),
        (pull(editor.agent, ".", cwd=other, **connection), "target contains the current directory"),
        (
            pull(editor.agent, "..", cwd=other, **connection),
            "target contains the current directory",
        ),
    ):
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(rf"Error: .*{text}.*\n", done.stderr), done.stderr
    assert not directory.exists()
    assert os.listdir(other) == ["mine"]
    failed = pull("unknown", directory, "--json", **connection)
    assert (failed.returncode, failed.stderr) == (1, "")
    assert json.loads(failed.stdout) == {"ok": False, "problem": "no such agent: unknown"}


def test_stale_files_are_used_only_on_request(
    editor: AgentEditor, directory: File, connection: dict[str, Any]
) -> None:
    editor.put("a.md", "x")
    assert pull(editor.agent, directory, **connection).returncode == 0
    # The same server, moved to an address that is unreachable.
    state = directory / ".carrel-workspace.json"
    state.write_text(state.read_text("utf-8").replace(connection["url"], UNREACHABLE_URL), "utf-8")
    unreachable = connection | {"url": UNREACHABLE_URL}

    assert pull(editor.agent, directory, **unreachable).returncode == 1
    done = pull(editor.agent, directory, "--stale-ok", **unreachable)
    report = json.loads(pull(editor.agent, directory, "--stale-ok", "--json", **unreachable).stdout)

    assert done.returncode == 0
    assert done.stdout.endswith("files, not updated\n")
    assert done.stderr.startswith(
        f"Using the earlier files: cannot reach the server at {UNREACHABLE_URL}"
    )
    assert (report["stale"], report["changed"]) == (True, False)
    assert report["problem"].startswith("cannot reach the server")


def test_invalid_directory_name_is_a_usage_error() -> None:
    done = CliRunner().invoke(main, ["pull", "ada", "work\0space"])
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)
    assert "is not a valid file or directory name" in done.output


@pytest.mark.parametrize("arguments", [[], ["ada"], ["ada", "x", "y"], ["ada", "x", "--frob"]])
def test_pull_has_help(arguments: list[str], tmp_path: File) -> None:
    assert pull(*arguments, cwd=tmp_path).returncode == 2


def test_terminal_gets_a_progress_bar(
    editor: AgentEditor, directory: File, connection: dict[str, Any]
) -> None:
    editor.put("a.md", "x")
    mine, theirs = pty.openpty()
    settings = environment(directory, **connection) | {
        "TERM": "xterm",
        "COLUMNS": "100",
        "LINES": "24",
    }
    run = [*command(PROGRAM), "pull", editor.agent, str(directory)]
    process = subprocess.Popen(run, env=settings, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(mine, 65536):
            output += chunk
    except OSError:
        pass  # Linux raises OSError when the other side is closed
    os.close(mine)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == 0
    assert out.decode() == f"{directory}: {len(editor.served())} files, written\n"
    assert re.search(rb"writing files .*\xe2\x94\x81.*?(\d+)/\1\b", output)
