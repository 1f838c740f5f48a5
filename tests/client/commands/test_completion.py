"""Shells complete commands and options, and from the server names and paths."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path as File

import pytest
from tests.client.cli_runner import CarrelCommand

from carrel.cli.completion import SHELLS

COMPLETE = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_carrel_completion carrel
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def suffix() -> str:
    """Beginning of the names of one test."""
    return f"s{secrets.token_hex(5)}"


def complete(carrel: CarrelCommand, *words: str) -> list[str]:
    """What a shell gets for the last word."""
    variables = {"_MAIN_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words))}
    output = carrel.output(**variables, COMP_WORDS="\n".join(("carrel", *words)))
    return [line.partition(",")[2] for line in output.splitlines() if line]


def test_commands_and_options_are_completed_without_a_server(carrel: CarrelCommand) -> None:
    elsewhere = CarrelCommand("http://127.0.0.1:9")
    assert complete(elsewhere, "templ") == ["templates"]
    assert complete(elsewhere, "agents", "cr") == ["create"]
    assert "--template" in complete(elsewhere, "agents", "create", "x", "--t")
    assert complete(elsewhere, "agents", "show", "a") == []
    assert complete(CarrelCommand(carrel.url, "wrong"), "agents", "show", "a") == []
    assert complete(CarrelCommand(carrel.url, ""), "agents", "show", "a") == []


def test_names_of_records_are_completed_from_the_server(carrel: CarrelCommand, suffix: str) -> None:
    carrel.output("templates", "create", f"{suffix}-t")
    carrel.output("agents", "create", f"{suffix}-a")
    carrel.output("people", "create", "Ida", f"{suffix}@example.org")
    carrel.output("secrets", "put", f"{suffix}-s", input="a-value-of-a-secret")
    key = carrel.json("keys", "create", suffix)
    assert complete(carrel, "agents", "show", suffix) == [f"{suffix}-a"]
    assert complete(carrel, "prompt", suffix[:4]) == [f"{suffix}-a"]
    assert complete(carrel, "agents", "--template", suffix) == [f"{suffix}-t"]
    assert complete(carrel, "invite", suffix) == [f"{suffix}@example.org"]
    assert complete(carrel, "secrets", "delete", suffix) == [f"{suffix}-s"]
    assert complete(carrel, "keys", "rotate", key["id"][:-1]) == [key["id"]]
    other = ("--url", carrel.url, "--token", carrel.token)
    assert complete(CarrelCommand("http://127.0.0.1:9"), "agents", *other, "show", suffix) == [
        f"{suffix}-a"
    ]


def test_places_and_paths_are_completed_one_step_at_a_time(
    carrel: CarrelCommand, suffix: str
) -> None:
    carrel.output("templates", "create", suffix)
    carrel.output("agents", "create", suffix)
    for path in ("notes/one.md", "notes/two.md"):
        carrel.output("put", f"{suffix}/{path}", "-", input="text")
    carrel.output("put", f"templates/{suffix}/AGENTS.md", "-", input="text")
    assert complete(carrel, "cat", suffix) == [f"{suffix}/"]
    assert complete(carrel, "cat", "templ") == ["templates/"]
    assert complete(carrel, "cat", f"templates/{suffix[:5]}") == [f"templates/{suffix}/"]
    assert complete(carrel, "cat", f"templates/{suffix}/A") == [f"templates/{suffix}/AGENTS.md"]
    assert complete(carrel, "cat", f"{suffix}/no") == [f"{suffix}/notes/"]
    assert complete(carrel, "cat", f"{suffix}/notes/o") == [f"{suffix}/notes/one.md"]
    assert complete(carrel, "cat", "defaults/SOU") == ["defaults/SOUL.md"]
    assert complete(carrel, "cat", "nobody/notes/") == []


def test_a_name_that_a_shell_would_run_is_not_completed(carrel: CarrelCommand, suffix: str) -> None:
    carrel.output("agents", "create", suffix)
    names = ("ok.md", "$(touch made).md", "`id`.md", "a b.md", "*.md", "x;y.md", "é.md")
    for name in names:
        carrel.output("put", f"{suffix}/notes/{name}", "-", input="text")
    assert complete(carrel, "cat", f"{suffix}/notes/") == [
        f"{suffix}/notes/ok.md",
        f"{suffix}/notes/é.md",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_know_completions_that_go_on(carrel: CarrelCommand, shell: str) -> None:
    script = carrel.output("completion", shell)
    assert f"_CARREL_COMPLETE={shell}_complete" in script
    assert "prefix" in script


def test_bash_completes_with_the_script(carrel: CarrelCommand, tmp_path: File) -> None:
    script, program = tmp_path / "script", tmp_path / "carrel"
    script.write_text(carrel.output("completion", "bash"))
    program.write_text(
        f"#!{sys.executable}\nfrom carrel.cli import main\nmain(prog_name='carrel')\n"
    )
    program.chmod(0o755)
    text = COMPLETE.format(script=script, words="carrel temp")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", text],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "templates\n"
