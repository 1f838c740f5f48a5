"""``carrel sync`` keeps a directory and an agent's own files equal, and loses no text."""

from __future__ import annotations

import json
import os
import unicodedata
from hashlib import sha256
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import AgentEditor, json_of
from tests.client.sync_process import READ_ONLY_FILES, STATE, SyncProcess
from tests.support.server_process import ServerProcess

from carrel.cli.sync.directory import SyncedDirectory


@pytest.fixture
def pair(live: ServerProcess, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    return SyncProcess(live, editor, tmp_path / "synced")


def test_new_files_are_copied_to_the_other_side(pair: SyncProcess) -> None:
    pair.write("notes/mine.md", "mine")
    pair.editor.put("notes/theirs.md", "theirs")

    done = pair.sync()

    assert (
        pair.local_files()
        == pair.server_files()
        == {"notes/mine.md": "mine", "notes/theirs.md": "theirs"}
    )
    assert (done["sent"], done["ok"], pair.code) == (["notes/mine.md"], True, 0)
    assert "notes/theirs.md" in done["received"]
    pair.assert_settled()


def test_edits_and_deletions_are_copied_both_ways(pair: SyncProcess) -> None:
    for name in ("edit-here", "edit-there", "remove-here", "remove-there", "stays"):
        pair.write(f"notes/{name}.md", name)
    pair.sync()

    pair.write("notes/edit-here.md", "edited here")
    pair.editor.put("notes/edit-there.md", "edited there")
    (pair.dir / "notes/remove-here.md").unlink()
    pair.editor.delete("notes/remove-there.md")
    done = pair.sync()

    expected = {"notes/edit-here.md": "edited here", "notes/edit-there.md": "edited there"}
    assert pair.local_files() == pair.server_files() == {**expected, "notes/stays.md": "stays"}
    assert (done["removedHere"], done["removedThere"]) == (
        ["notes/remove-there.md"],
        ["notes/remove-here.md"],
    )
    pair.assert_settled()


def test_uploads_and_deletions_are_one_commit(pair: SyncProcess) -> None:
    for number in range(5):
        pair.write(f"notes/{number}.md", "1")
    pair.sync()
    for number in range(4):
        pair.write(f"notes/{number}.md", "2")
    (pair.dir / "notes/4.md").unlink()
    pair.sync()

    url = f"/v1/agents/{pair.editor.agent}/files"
    histories = [
        json_of(pair.editor.http.get(f"{url}/notes%2F{number}.md/history"))["items"]
        for number in range(5)
    ]
    assert [len(versions) for versions in histories] == [2] * 5
    for position in range(2):
        assert len({versions[position]["updatedAt"] for versions in histories}) == 1
    pair.assert_settled()


def test_change_wins_over_a_deletion(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    pair.write("b.md", "1")
    pair.sync()

    (pair.dir / "a.md").unlink()
    pair.editor.put("a.md", "2")
    pair.write("b.md", "2")
    pair.editor.delete("b.md")
    pair.sync()

    assert pair.local_files() == pair.server_files() == {"a.md": "2", "b.md": "2"}


def test_conflict_keeps_both_texts_until_it_is_resolved(pair: SyncProcess) -> None:
    pair.write("a.md", "1")
    pair.sync()
    pair.write("a.md", "mine")
    pair.editor.put("a.md", "theirs")

    first, second = pair.sync(), pair.sync()

    [copy] = [path for path in pair.local_files() if path != "a.md"]
    assert first["conflicts"] == second["conflicts"] == [{"path": "a.md", "copy": copy}]
    assert (first["ok"], pair.code) == (False, 1)
    assert copy.startswith("a.conflict-")
    assert pair.local_files() == {"a.md": "mine", copy: "theirs"}
    assert pair.server_files() == {"a.md": "theirs"}

    pair.write("a.md", "mine and theirs")
    (pair.dir / copy).unlink()
    pair.sync()
    assert pair.local_files() == pair.server_files() == {"a.md": "mine and theirs"}
    assert pair.code == 0


def test_taking_the_servers_text_resolves_the_conflict(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    pair.editor.put("a.md", "theirs")
    pair.sync()
    [copy] = [path for path in pair.local_files() if path != "a.md"]
    os.rename(pair.dir / copy, pair.dir / "a.md")

    assert pair.sync()["ok"]
    assert pair.local_files() == pair.server_files() == {"a.md": "theirs"}


def test_server_may_change_during_a_conflict(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    pair.editor.put("a.md", "theirs")
    pair.sync()
    pair.editor.put("a.md", "theirs again")
    pair.sync()

    assert sorted(pair.local_files().values()) == ["mine", "theirs again"]
    [copy] = [path for path in pair.local_files() if path != "a.md"]
    pair.write(copy, "worked on")
    pair.editor.put("a.md", "theirs at last")
    pair.sync()
    assert sorted(pair.local_files().values()) == ["mine", "theirs at last", "worked on"]
    assert pair.server_files() == {"a.md": "theirs at last"}


def test_pinned_and_managed_files_are_read_only(pair: SyncProcess) -> None:
    pair.sync()
    file = pair.dir / "GUARDRAILS.md"
    reviewed = file.read_text("utf-8")
    assert {item.name for item in pair.dir.iterdir()} >= READ_ONLY_FILES
    file.write_text("no rules")
    (pair.dir / "USER.md").write_text("me")

    done = pair.sync()

    copies = {item["path"]: item["copy"] for item in done["refused"]}
    assert (set(copies), pair.code) == ({"GUARDRAILS.md", "USER.md"}, 1)
    assert file.read_text("utf-8") == reviewed
    assert (pair.dir / copies["GUARDRAILS.md"]).read_text("utf-8") == "no rules"
    assert (pair.dir / copies["USER.md"]).read_text("utf-8") == "me"
    assert not [row for row in pair.rows() if row["class"] != "live"]
    file.unlink()
    pair.sync()
    assert file.read_text("utf-8") == reviewed


def test_inherited_files_are_not_copied_until_overridden(pair: SyncProcess) -> None:
    pair.editor.put("SOUL.md", "the template's", of="templates")
    pair.sync()
    assert pair.local_files() == {}

    pair.write("SOUL.md", "my own")
    pair.sync()
    assert pair.server_files() == {"SOUL.md": "my own"}

    (pair.dir / "SOUL.md").unlink()
    pair.sync()
    assert (pair.server_files(), pair.local_files()) == ({}, {})
    assert pair.editor.served()["SOUL.md"] == b"the template's"


def test_copy_of_an_inherited_file_makes_no_override(pair: SyncProcess) -> None:
    pair.editor.put("SOUL.md", "the template's", of="templates")
    pair.write("SOUL.md", "the template's")
    pair.sync()
    assert pair.server_files() == {}

    pair.editor.put("SOUL.md", "newer", of="templates")
    pair.sync()
    assert (pair.local_files(), pair.server_files()) == ({"SOUL.md": "newer"}, {})

    pair.write("SOUL.md", "mine")
    pair.sync()
    assert pair.server_files() == {"SOUL.md": "mine"}


def test_placeholders_are_synced_unrendered(pair: SyncProcess) -> None:
    pair.editor.put("SOUL.md", "You are {{AGENT_NAME}}.")
    pair.sync()
    assert pair.local_files() == {"SOUL.md": "You are {{AGENT_NAME}}."}
    pair.editor.rename("Grace")
    pair.sync()
    assert "SOUL.md" not in pair.report["received"]


def test_secret_stays_local_and_is_redacted_on_the_server(pair: SyncProcess) -> None:
    text = "key: AKIA" + "ABCDEFGHIJKLMNOP" + "\n"
    pair.write("a.md", text)
    assert pair.sync()["redacted"] == ["a.md"]
    assert pair.local_files() == {"a.md": text}
    assert "AKIA" not in pair.server_files()["a.md"]
    pair.assert_settled()

    pair.editor.put("a.md", "another")
    pair.sync()
    assert sorted(pair.local_files().values()) == sorted([text, "another"])
    assert pair.server_files() == {"a.md": "another"}


def test_content_type_is_kept_by_an_edit(pair: SyncProcess) -> None:
    body = {"content": "{}", "contentType": "application/json"}
    json_of(pair.editor.http.put(pair.editor.url("a.json"), json=body))
    pair.sync()
    pair.write("a.json", "[]")
    pair.sync()
    [row] = pair.rows()
    assert (row["content"], row["contentType"]) == ("[]", "application/json")


def test_unicode_normal_forms_name_the_same_file(pair: SyncProcess) -> None:
    composed = "é.md"
    pair.write(unicodedata.normalize("NFD", composed), "1")
    pair.sync()
    assert pair.server_files() == {composed: "1"}
    pair.editor.put(composed, "2")
    pair.sync()
    assert pair.local_files() == {unicodedata.normalize("NFD", composed): "2"}
    pair.write(composed, "3")
    assert [row["path"] for row in pair.sync()["leftOut"]] == [composed]
    assert pair.server_files() == {composed: "2"}


def test_interrupted_sync_is_resumed(pair: SyncProcess) -> None:
    pair.write("mine.md", "mine")
    pair.write("gone.md", "gone")
    pair.sync()
    before = (pair.dir / STATE).read_bytes()
    pair.write("mine.md", "mine, edited")
    pair.editor.put("theirs.md", "theirs")
    (pair.dir / "gone.md").unlink()
    pair.sync()
    (pair.dir / STATE).write_bytes(before)  # As if it had been killed before it could store that.

    assert pair.sync()["ok"]
    assert (
        pair.local_files()
        == pair.server_files()
        == {"mine.md": "mine, edited", "theirs.md": "theirs"}
    )


def test_directory_is_synced_by_one_process_at_a_time(pair: SyncProcess) -> None:
    pair.sync()
    folder = SyncedDirectory(pair.dir)
    try:
        report = pair.sync()
    finally:
        folder.close()
    assert (pair.code, report["ok"]) == (1, False)
    assert "is being synced by another process" in report["problem"]
    assert pair.sync()["ok"]


def test_directory_belongs_to_one_agent(pair: SyncProcess, http: httpx.Client) -> None:
    pair.write("a.md", "mine")
    pair.sync()
    other = AgentEditor.of_new_agent(http)
    report = pair.sync(agent=other.agent)
    assert (pair.code, report["ok"]) == (1, False)
    assert f"is synced with {pair.editor.agent}" in report["problem"]
    assert "a.md" not in other.served()


def test_another_agent_with_the_slug_is_refused(pair: SyncProcess) -> None:
    pair.write("a.md", "mine")
    pair.sync()
    http, agent = pair.editor.http, pair.editor.agent
    assert http.delete(f"/v1/agents/{agent}").status_code == 204
    json_of(http.post("/v1/agents", json={"slug": agent, "name": "B"}))
    assert "is synced with" in pair.sync()["problem"]
    assert pair.local_files() == {"a.md": "mine"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2, "server": "", "agent": ""}'])
def test_foreign_state_file_is_refused(pair: SyncProcess, text: str) -> None:
    pair.write("a.md", "mine")
    pair.write(STATE, text)
    assert pair.sync()["ok"] is False
    assert STATE in pair.report["problem"]
    assert (pair.dir / STATE).read_text("utf-8") == text


def test_forged_state_file_does_not_lead_out_of_the_directory(pair: SyncProcess) -> None:
    outside = pair.dir.parent / "x.conflict-00000000.md"
    outside.write_text("not mine")
    pair.sync()
    state = json.loads((pair.dir / STATE).read_text("utf-8"))
    for path, copy in (("../y.md", None), ("a.md", "../x.conflict-00000000.md")):
        entry = {"here": None, "there": "0" * 64, "copy": copy}
        pair.write(STATE, json.dumps({**state, "files": {path: entry}}))
        pair.editor.put("a.md", "theirs")
        pair.sync()
    assert outside.read_text("utf-8") == "not mine"


def test_lost_response_makes_no_conflict(pair: SyncProcess) -> None:
    pair.sync()
    state = json.loads((pair.dir / STATE).read_text("utf-8"))
    pair.editor.put("a.md", "on its way")
    pair.write("a.md", "edited since")
    sent = sha256(b"on its way").hexdigest()
    pair.write(STATE, json.dumps({**state, "sending": {"a.md": sent}}))

    assert pair.sync()["sent"] == ["a.md"]
    assert pair.local_files() == pair.server_files() == {"a.md": "edited since"}
    assert json.loads((pair.dir / STATE).read_text("utf-8"))["sending"] == {}
