"""``carrel import``: a directory's files as they come to stand on a server, over the wire."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path as Local

import httpx
import pytest
from tests.client.cli_runner import Carrel
from tests.client.server_fixture import Hands, made

from carrel.cli.import_files import directory_scan
from carrel.cli.import_files.import_plan import ImportOptions, ImportStep, execute_plan, plan_import
from carrel_client import AsyncClient

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def folder(tmp_path: Local) -> Local:
    room = tmp_path / "folder"
    (room / "notes").mkdir(parents=True)
    (room / "SOUL.md").write_text("Kind.\n")
    (room / "notes/a.md").write_text("one")
    (room / ".git").mkdir()
    (room / ".git/config").write_text("hidden")
    (room / "a.md~").write_text("left by an editor")
    return room


def own(hands: Hands) -> dict[str, tuple[str, int]]:
    """The agent's own files, and their versions."""
    rows = made(hands.http.get(f"/v1/agents/{hands.agent}/files?content=true"))["files"]
    mine = [row for row in rows if row["source"] == "agent-override"]
    return {row["path"]: (row["content"], row["version"]) for row in mine}


def test_what_differs_is_written_and_what_is_equal_is_not(
    hands: Hands, carrel: Carrel, folder: Local
) -> None:
    hands.put("notes/a.md", "one")
    hands.put("kept.md", "only there")
    hands.put("SOUL.md", "Brisk.\n", "templates")
    dry = carrel("import", folder, hands.agent, "--dry-run")
    assert dry.stdout == "SOUL.md: would be changed (over template)\n"
    assert dry.stderr == f"{hands.agent}: 1 would be written, 1 equal\n"
    assert "SOUL.md" not in own(hands)
    done = carrel("import", folder, hands.agent, "--reason", "moved in")
    assert (done.exit_code, done.stdout) == (0, "SOUL.md: changed (over template)\n")
    assert done.stderr == f"importing: 1 of 1\n{hands.agent}: 1 written, 1 equal\n"
    expected = {"SOUL.md": ("Kind.\n", 1), "notes/a.md": ("one", 1), "kept.md": ("only there", 1)}
    assert {path: own(hands)[path] for path in expected} == expected
    told = carrel.told("import", folder, hands.agent)
    assert [(row["change"], row["written"]) for row in told["files"]] == [("equal", False)] * 2
    assert told["passedOver"] == [".git/", "a.md~"]
    assert own(hands)["SOUL.md"] == ("Kind.\n", 1)
    assert carrel.told("log", f"{hands.agent}/SOUL.md")["versions"][0]["reason"] == "moved in"


def test_what_a_template_says_already_makes_no_file_of_the_agents(
    hands: Hands, carrel: Carrel, folder: Local
) -> None:
    carrel.said("import", folder, f"templates/{hands.template}")
    told = carrel.told("import", folder, hands.agent)
    assert {row["change"] for row in told["files"]} == {"equal"}
    assert {"SOUL.md", "notes/a.md"}.isdisjoint(own(hands))
    assert carrel.said("cat", f"{hands.agent}/notes/a.md") == "one"


def test_a_link_or_what_is_no_text_or_no_path_stops_all(
    hands: Hands, carrel: Carrel, folder: Local
) -> None:
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "elsewhere").symlink_to("/etc")
    (folder / "back\\slash").write_text("x")
    (folder / "picture.png").write_bytes(b"\x89PNG\xff")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"\xff.md")).write_text("x")
    done = carrel("import", folder, hands.agent)
    assert (done.exit_code, done.stdout) == (1, "")
    for line in (
        "passwd: it is a link",
        "elsewhere: it is a link",
        "picture.png: it is not UTF-8",
        "pipe: it is not a regular file",
    ):
        assert f"{line}\n" in done.stderr
    assert "backslash" in done.stderr
    assert "not valid Unicode" in done.stderr
    assert own(hands) == {}
    told = carrel.told("import", folder, hands.agent, code=1)
    assert (told["ok"], len(told["files"])) == (False, 6)
    assert carrel("import", folder / "none", hands.agent).exit_code == 2
    assert carrel("import", folder, f"{hands.agent}/notes").exit_code == 2


def test_one_that_is_refused_stops_no_other(hands: Hands, carrel: Carrel, folder: Local) -> None:
    (folder / "GUARDRAILS.md").write_text("All is allowed.")
    done = carrel("import", folder, hands.agent)
    assert done.exit_code == 1
    assert done.stderr.startswith("importing: 3 of 3\nerror: GUARDRAILS.md: ")
    assert done.stderr.endswith(f"{hands.agent}: 2 written, 0 equal, 1 failed\n")
    assert {"SOUL.md", "notes/a.md"} <= set(own(hands))
    told = carrel.told("import", folder, hands.agent, "--accept")
    assert [row["path"] for row in told["files"] if row["written"]] == ["GUARDRAILS.md"]


def test_what_was_changed_meanwhile_is_left_alone(
    hands: Hands, carrel: Carrel, folder: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are read once more right before they are written: that is when others write here."""
    read = directory_scan.LocalFiles.read

    def meddled(here: directory_scan.LocalFiles, path: str) -> bytes:
        if path == "SOUL.md":
            hands.put("SOUL.md", "theirs")
        else:
            (folder / path).write_text("changed on disk")
        return read(here, path)

    monkeypatch.setattr(directory_scan.LocalFiles, "read", meddled)
    told = carrel.told("import", folder, hands.agent, code=1)
    problems = {row["path"]: row["problem"] for row in told["files"]}
    assert problems == {
        "SOUL.md": "it was changed there meanwhile",
        "notes/a.md": "it was changed while it was imported",
    }
    assert own(hands)["SOUL.md"] == ("theirs", 1)
    assert "notes/a.md" not in own(hands)


def test_a_server_that_goes_away_leaves_the_rest_untried(folder: Local) -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody there", request=request)

    async def imported() -> list[ImportStep]:
        found = directory_scan.scan_directory(str(folder))
        steps = plan_import(found, {})
        async with AsyncClient(NOBODY, "t", transport=httpx.MockTransport(lost)) as desk:
            how = ImportOptions(None, accept=False)
            await execute_plan(desk.agent("ada"), found, steps, how, lambda *_: None)
        return steps

    first, rest = asyncio.run(imported())
    assert first.problem == "the server does not answer: nobody there"
    assert rest.problem == "not tried"
