"""``carrel sync`` keeps a directory and an agent's own files the same, and loses no text."""

from __future__ import annotations

import json
import os
import unicodedata
from hashlib import sha256
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import AgentEditor, json_of
from tests.client.sync_process import HELD, STATE, SyncProcess
from tests.support.server_process import Live

from carrel.cli.sync.directory import SyncedDirectory


@pytest.fixture
def both(live: Live, editor: AgentEditor, tmp_path: File) -> SyncProcess:
    return SyncProcess(live, editor, tmp_path / "desk")


def test_new_files_are_copied_to_the_other_side(both: SyncProcess) -> None:
    both.write("notes/mine.md", "mine")
    both.editor.put("notes/theirs.md", "theirs")

    done = both.sync()

    assert (
        both.local_files()
        == both.server_files()
        == {"notes/mine.md": "mine", "notes/theirs.md": "theirs"}
    )
    assert (done["sent"], done["ok"], both.code) == (["notes/mine.md"], True, 0)
    assert "notes/theirs.md" in done["received"]
    both.assert_settled()


def test_edits_and_deletions_are_copied_both_ways(both: SyncProcess) -> None:
    for name in ("edit-here", "edit-there", "remove-here", "remove-there", "stays"):
        both.write(f"notes/{name}.md", name)
    both.sync()

    both.write("notes/edit-here.md", "edited here")
    both.editor.put("notes/edit-there.md", "edited there")
    (both.dir / "notes/remove-here.md").unlink()
    both.editor.delete("notes/remove-there.md")
    done = both.sync()

    expected = {"notes/edit-here.md": "edited here", "notes/edit-there.md": "edited there"}
    assert both.local_files() == both.server_files() == {**expected, "notes/stays.md": "stays"}
    assert (done["removedHere"], done["removedThere"]) == (
        ["notes/remove-there.md"],
        ["notes/remove-here.md"],
    )
    both.assert_settled()


def test_change_wins_over_a_deletion(both: SyncProcess) -> None:
    both.write("a.md", "1")
    both.write("b.md", "1")
    both.sync()

    (both.dir / "a.md").unlink()
    both.editor.put("a.md", "2")
    both.write("b.md", "2")
    both.editor.delete("b.md")
    both.sync()

    assert both.local_files() == both.server_files() == {"a.md": "2", "b.md": "2"}


def test_conflict_keeps_both_texts_until_it_is_resolved(both: SyncProcess) -> None:
    both.write("a.md", "1")
    both.sync()
    both.write("a.md", "mine")
    both.editor.put("a.md", "theirs")

    first, second = both.sync(), both.sync()

    [copy] = [path for path in both.local_files() if path != "a.md"]
    assert first["conflicts"] == second["conflicts"] == [{"path": "a.md", "copy": copy}]
    assert (first["ok"], both.code) == (False, 1)
    assert copy.startswith("a.conflict-")
    assert both.local_files() == {"a.md": "mine", copy: "theirs"}
    assert both.server_files() == {"a.md": "theirs"}

    both.write("a.md", "mine and theirs")
    (both.dir / copy).unlink()
    both.sync()
    assert both.local_files() == both.server_files() == {"a.md": "mine and theirs"}
    assert both.code == 0


def test_taking_the_servers_text_resolves_the_conflict(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    both.editor.put("a.md", "theirs")
    both.sync()
    [copy] = [path for path in both.local_files() if path != "a.md"]
    os.rename(both.dir / copy, both.dir / "a.md")

    assert both.sync()["ok"]
    assert both.local_files() == both.server_files() == {"a.md": "theirs"}


def test_server_may_change_during_a_conflict(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    both.editor.put("a.md", "theirs")
    both.sync()
    both.editor.put("a.md", "theirs again")
    both.sync()

    assert sorted(both.local_files().values()) == ["mine", "theirs again"]
    [copy] = [path for path in both.local_files() if path != "a.md"]
    both.write(copy, "worked on")
    both.editor.put("a.md", "theirs at last")
    both.sync()
    assert sorted(both.local_files().values()) == ["mine", "theirs at last", "worked on"]
    assert both.server_files() == {"a.md": "theirs at last"}


def test_pinned_and_managed_files_are_read_only(both: SyncProcess) -> None:
    both.sync()
    file = both.dir / "GUARDRAILS.md"
    reviewed = file.read_text("utf-8")
    assert {each.name for each in both.dir.iterdir()} >= HELD
    file.write_text("no rules")
    (both.dir / "USER.md").write_text("me")

    done = both.sync()

    kept = {each["path"]: each["copy"] for each in done["refused"]}
    assert (set(kept), both.code) == ({"GUARDRAILS.md", "USER.md"}, 1)
    assert file.read_text("utf-8") == reviewed
    assert (both.dir / kept["GUARDRAILS.md"]).read_text("utf-8") == "no rules"
    assert (both.dir / kept["USER.md"]).read_text("utf-8") == "me"
    assert not [row for row in both.rows() if row["class"] != "live"]
    file.unlink()
    both.sync()
    assert file.read_text("utf-8") == reviewed


def test_inherited_files_are_not_copied_until_overridden(both: SyncProcess) -> None:
    both.editor.put("SOUL.md", "the template's", of="templates")
    both.sync()
    assert both.local_files() == {}

    both.write("SOUL.md", "my own")
    both.sync()
    assert both.server_files() == {"SOUL.md": "my own"}

    (both.dir / "SOUL.md").unlink()
    both.sync()
    assert (both.server_files(), both.local_files()) == ({}, {})
    assert both.editor.served()["SOUL.md"] == b"the template's"


def test_copy_of_an_inherited_file_makes_no_override(both: SyncProcess) -> None:
    both.editor.put("SOUL.md", "the template's", of="templates")
    both.write("SOUL.md", "the template's")
    both.sync()
    assert both.server_files() == {}

    both.editor.put("SOUL.md", "newer", of="templates")
    both.sync()
    assert (both.local_files(), both.server_files()) == ({"SOUL.md": "newer"}, {})

    both.write("SOUL.md", "mine")
    both.sync()
    assert both.server_files() == {"SOUL.md": "mine"}


def test_placeholders_are_synced_unrendered(both: SyncProcess) -> None:
    both.editor.put("SOUL.md", "You are {{AGENT_NAME}}.")
    both.sync()
    assert both.local_files() == {"SOUL.md": "You are {{AGENT_NAME}}."}
    both.editor.rename("Grace")
    both.sync()
    assert "SOUL.md" not in both.done["received"]


def test_secret_stays_local_and_is_redacted_on_the_server(both: SyncProcess) -> None:
    text = "key: AKIA" + "ABCDEFGHIJKLMNOP" + "\n"
    both.write("a.md", text)
    assert both.sync()["redacted"] == ["a.md"]
    assert both.local_files() == {"a.md": text}
    assert "AKIA" not in both.server_files()["a.md"]
    both.assert_settled()

    both.editor.put("a.md", "another")
    both.sync()
    assert sorted(both.local_files().values()) == sorted([text, "another"])
    assert both.server_files() == {"a.md": "another"}


def test_content_type_is_kept_by_an_edit(both: SyncProcess) -> None:
    body = {"content": "{}", "contentType": "application/json"}
    json_of(both.editor.http.put(both.editor.url("a.json"), json=body))
    both.sync()
    both.write("a.json", "[]")
    both.sync()
    [row] = both.rows()
    assert (row["content"], row["contentType"]) == ("[]", "application/json")


def test_unicode_normal_forms_name_the_same_file(both: SyncProcess) -> None:
    composed = "é.md"
    both.write(unicodedata.normalize("NFD", composed), "1")
    both.sync()
    assert both.server_files() == {composed: "1"}
    both.editor.put(composed, "2")
    both.sync()
    assert both.local_files() == {unicodedata.normalize("NFD", composed): "2"}
    both.write(composed, "3")
    assert [each["path"] for each in both.sync()["leftOut"]] == [composed]
    assert both.server_files() == {composed: "2"}


def test_interrupted_sync_is_resumed(both: SyncProcess) -> None:
    both.write("mine.md", "mine")
    both.write("gone.md", "gone")
    both.sync()
    before = (both.dir / STATE).read_bytes()
    both.write("mine.md", "mine, edited")
    both.editor.put("theirs.md", "theirs")
    (both.dir / "gone.md").unlink()
    both.sync()
    (both.dir / STATE).write_bytes(before)  # As if it had been killed before it could note that.

    assert both.sync()["ok"]
    assert (
        both.local_files()
        == both.server_files()
        == {"mine.md": "mine, edited", "theirs.md": "theirs"}
    )


def test_directory_is_synced_by_one_process_at_a_time(both: SyncProcess) -> None:
    both.sync()
    folder = SyncedDirectory(both.dir)
    try:
        told = both.sync()
    finally:
        folder.close()
    assert (both.code, told["ok"]) == (1, False)
    assert "is being synced by another process" in told["problem"]
    assert both.sync()["ok"]


def test_directory_belongs_to_one_agent(both: SyncProcess, http: httpx.Client) -> None:
    both.write("a.md", "mine")
    both.sync()
    other = AgentEditor.of_new_agent(http)
    told = both.sync(agent=other.agent)
    assert (both.code, told["ok"]) == (1, False)
    assert f"is synced with {both.editor.agent}" in told["problem"]
    assert "a.md" not in other.served()


def test_another_agent_with_the_slug_is_refused(both: SyncProcess) -> None:
    both.write("a.md", "mine")
    both.sync()
    http, agent = both.editor.http, both.editor.agent
    assert http.delete(f"/v1/agents/{agent}").status_code == 204
    json_of(http.post("/v1/agents", json={"slug": agent, "name": "B"}))
    assert "is synced with" in both.sync()["problem"]
    assert both.local_files() == {"a.md": "mine"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2, "server": "", "agent": ""}'])
def test_foreign_state_file_is_refused(both: SyncProcess, text: str) -> None:
    both.write("a.md", "mine")
    both.write(STATE, text)
    assert both.sync()["ok"] is False
    assert STATE in both.done["problem"]
    assert (both.dir / STATE).read_text("utf-8") == text


def test_forged_state_file_does_not_lead_out_of_the_directory(both: SyncProcess) -> None:
    outside = both.dir.parent / "x.conflict-00000000.md"
    outside.write_text("not mine")
    both.sync()
    state = json.loads((both.dir / STATE).read_text("utf-8"))
    for path, copy in (("../y.md", None), ("a.md", "../x.conflict-00000000.md")):
        known = {"here": None, "there": "0" * 64, "copy": copy}
        both.write(STATE, json.dumps({**state, "files": {path: known}}))
        both.editor.put("a.md", "theirs")
        both.sync()
    assert outside.read_text("utf-8") == "not mine"


def test_lost_response_makes_no_conflict(both: SyncProcess) -> None:
    both.sync()
    state = json.loads((both.dir / STATE).read_text("utf-8"))
    both.editor.put("a.md", "on its way")
    both.write("a.md", "edited since")
    sent = sha256(b"on its way").hexdigest()
    both.write(STATE, json.dumps({**state, "sending": {"a.md": sent}}))

    assert both.sync()["sent"] == ["a.md"]
    assert both.local_files() == both.server_files() == {"a.md": "edited since"}
    assert json.loads((both.dir / STATE).read_text("utf-8"))["sending"] == {}
