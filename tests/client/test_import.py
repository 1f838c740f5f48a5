"""``carrel import`` of a directory, against a running server."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path as Local

import httpx
import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor, json_of

from carrel.cli.import_files import directory_scan
from carrel.cli.import_files.import_plan import ImportOptions, ImportStep, execute_plan, plan_import
from carrel_client import AsyncClient

UNREACHABLE_URL = "http://127.0.0.1:1"


@pytest.fixture
def folder(tmp_path: Local) -> Local:
    directory = tmp_path / "folder"
    (directory / "notes").mkdir(parents=True)
    (directory / "SOUL.md").write_text("Kind.\n")
    (directory / "notes/a.md").write_text("one")
    (directory / ".git").mkdir()
    (directory / ".git/config").write_text("hidden")
    (directory / "a.md~").write_text("left by an editor")
    return directory


def own(editor: AgentEditor) -> dict[str, tuple[str, int]]:
    """The agent's own files with their versions."""
    rows = json_of(editor.http.get(f"/v1/agents/{editor.agent}/files?content=true"))["files"]
    mine = [row for row in rows if row["source"] == "agent-override"]
    return {row["path"]: (row["content"], row["version"]) for row in mine}


def test_import_writes_only_files_that_differ(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local
) -> None:
    editor.put("notes/a.md", "one")
    editor.put("kept.md", "only there")
    editor.put("SOUL.md", "Brisk.\n", "templates")
    dry = carrel("import", folder, editor.agent, "--dry-run")
    assert dry.stdout == "SOUL.md: would be changed (replaces template)\n"
    assert dry.stderr == f"{editor.agent}: 1 would be written, 1 equal\n"
    assert "SOUL.md" not in own(editor)
    done = carrel("import", folder, editor.agent, "--reason", "migrated")
    assert (done.exit_code, done.stdout) == (0, "SOUL.md: changed (replaces template)\n")
    assert done.stderr == f"importing: 1 of 1\n{editor.agent}: 1 written, 1 equal\n"
    expected = {"SOUL.md": ("Kind.\n", 2), "notes/a.md": ("one", 1), "kept.md": ("only there", 1)}
    assert {path: own(editor)[path] for path in expected} == expected
    report = carrel.json("import", folder, editor.agent)
    assert [(row["change"], row["written"]) for row in report["files"]] == [("equal", False)] * 2
    assert report["passedOver"] == [".git/", "a.md~"]
    assert own(editor)["SOUL.md"] == ("Kind.\n", 2)
    assert carrel.json("log", f"{editor.agent}/SOUL.md")["versions"][0]["reason"] == "migrated"


def test_file_equal_to_the_templates_makes_no_override(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local
) -> None:
    carrel.output("import", folder, f"templates/{editor.template}")
    report = carrel.json("import", folder, editor.agent)
    assert {row["change"] for row in report["files"]} == {"equal"}
    assert {"SOUL.md", "notes/a.md"}.isdisjoint(own(editor))
    assert carrel.output("cat", f"{editor.agent}/notes/a.md") == "one"


def test_link_or_invalid_path_stops_the_import(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local
) -> None:
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "elsewhere").symlink_to("/etc")
    (folder / "back\\slash").write_text("x")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"\xff.md")).write_text("x")
    done = carrel("import", folder, editor.agent)
    assert (done.exit_code, done.stdout) == (1, "")
    for line in (
        "passwd: is a symbolic link",
        "elsewhere: is a symbolic link",
        "pipe: is not a regular file",
    ):
        assert f"{line}\n" in done.stderr
    assert "backslash" in done.stderr
    assert "not valid Unicode" in done.stderr
    assert own(editor) == {}
    report = carrel.json("import", folder, editor.agent, code=1)
    assert (report["ok"], len(report["files"])) == (False, 5)
    assert carrel("import", folder / "none", editor.agent).exit_code == 2
    assert carrel("import", folder, f"{editor.agent}/notes").exit_code == 2


@pytest.mark.parametrize("others", [0, 1])
def test_bytes_that_are_not_text_are_imported(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local, others: int
) -> None:
    """In a commit with others, and alone; also what is larger than a JSON body may be."""
    folder = tmp_path / "media"
    folder.mkdir()
    for number in range(others):
        (folder / f"{number}.md").write_text("text")
    (folder / "picture.png").write_bytes(b"\x89PNG\xff\0")
    assert "picture.png: new" in carrel.output("import", "--dry-run", folder, editor.agent)
    assert carrel("import", folder, editor.agent).exit_code == 0
    url = f"/v1/agents/{editor.agent}/files/picture.png"
    served = editor.http.get(url, headers={"Accept": "application/octet-stream"})
    assert (served.content, served.headers["content-type"]) == (b"\x89PNG\xff\0", "image/png")
    report = carrel.json("import", folder, editor.agent)
    assert {row["change"] for row in report["files"]} == {"equal"}

    (folder / "large.bin").write_bytes(large := os.urandom(30 * 2**20))
    workspace = json_of(editor.http.post("/accounts/me/workspaces", json={"name": "media"}))
    owner = f"workspaces/{workspace['workspaceId']}"
    report = carrel.json("import", folder, owner)
    assert {row["path"]: row["redacted"] for row in report["files"]}["large.bin"] is False
    output = tmp_path / "again"
    carrel.output("cat", f"{owner}/large.bin", "--output", output)
    assert output.read_bytes() == large


def test_one_refused_file_stops_no_other(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local
) -> None:
    (folder / "GUARDRAILS.md").write_text("All is allowed.")
    done = carrel("import", folder, editor.agent)
    assert done.exit_code == 1
    assert done.stderr.startswith("importing: 3 of 3\nA commit was refused; its files were written")
    assert "\nerror: GUARDRAILS.md: " in done.stderr
    assert done.stderr.endswith(f"{editor.agent}: 2 written, 0 equal, 1 failed\n")
    assert {"SOUL.md", "notes/a.md"} <= set(own(editor))
    report = carrel.json("import", folder, editor.agent, "--accept")
    assert [row["path"] for row in report["files"] if row["written"]] == ["GUARDRAILS.md"]


def test_file_changed_during_the_import_is_left_alone(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are read once more right before they are written, which is when the conflict occurs."""
    read = directory_scan.LocalFiles.read

    def read_after_edit(here: directory_scan.LocalFiles, path: str) -> bytes:
        if path == "SOUL.md":
            editor.put("SOUL.md", "theirs")
        else:
            (folder / path).write_text("changed on disk")
        return read(here, path)

    monkeypatch.setattr(directory_scan.LocalFiles, "read", read_after_edit)
    report = carrel.json("import", folder, editor.agent, code=1)
    problems = {row["path"]: row["problem"] for row in report["files"]}
    assert problems == {
        "SOUL.md": "changed on the server during the import",
        "notes/a.md": "the file changed during the import",
    }
    assert own(editor)["SOUL.md"] == ("theirs", 2)
    assert "notes/a.md" not in own(editor)


def test_files_are_written_in_one_commit(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local
) -> None:
    for number in range(20):
        (folder / f"notes/{number}.md").write_text(str(number))
    report = carrel.json("import", folder, editor.agent)
    assert (report["ok"], report["refusedCommits"]) == (True, 0)
    rows = json_of(editor.http.get(f"/v1/agents/{editor.agent}/files"))["files"]
    times = {row["updatedAt"] for row in rows if row["source"] == "agent-override"}
    assert (len(own(editor)), len(times)) == (22, 1)


@pytest.mark.parametrize("dry_run", [True, False])
def test_files_of_a_refused_commit_are_written_one_at_a_time(
    editor: AgentEditor, carrel: CarrelCommand, folder: Local, dry_run: bool
) -> None:
    (folder / "USER.md").write_text("managed")
    options = ["--dry-run"] if dry_run else []
    report = carrel.json("import", folder, editor.agent, *options, code=1)
    problems = {row["path"]: row.get("problem") for row in report["files"]}
    assert report["refusedCommits"] == 1
    assert "managed" in problems.pop("USER.md")
    assert problems == {"SOUL.md": None, "notes/a.md": None}
    assert set(own(editor)) == (set() if dry_run else {"SOUL.md", "notes/a.md"})


def test_unreachable_server_ends_the_import(folder: Local) -> None:
    def refuse_connection(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    async def run_import() -> list[ImportStep]:
        files = directory_scan.scan_directory(str(folder))
        steps = plan_import(files, {})
        async with AsyncClient(
            UNREACHABLE_URL, "t", transport=httpx.MockTransport(refuse_connection)
        ) as client:
            options = ImportOptions(None, accept=False)
            await execute_plan(client.agent("ada"), files, steps, options, lambda *_: None)
        return steps

    first, rest = asyncio.run(run_import())
    assert first.problem == "cannot reach the server at http://127.0.0.1:1: connection refused"
    assert rest.problem == "not tried"
