"""A directory and an agent's own files are kept the same, and nobody's text is lost."""

from __future__ import annotations

import json
import os
import unicodedata
from hashlib import sha256
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import Hands, made
from tests.client.sync_process import HELD, STATE, Synced
from tests.support.server_process import Live

from carrel.cli.sync.directory import SyncedDirectory


@pytest.fixture
def both(live: Live, hands: Hands, tmp_path: File) -> Synced:
    return Synced(live, hands, tmp_path / "desk")


def test_what_is_new_on_one_side_comes_to_the_other(both: Synced) -> None:
    both.write("notes/mine.md", "mine")
    both.hands.put("notes/theirs.md", "theirs")

    done = both.sync()

    assert both.here() == both.there() == {"notes/mine.md": "mine", "notes/theirs.md": "theirs"}
    assert (done["sent"], done["ok"], both.code) == (["notes/mine.md"], True, 0)
    assert "notes/theirs.md" in done["received"]
    both.rests()


def test_edits_and_removals_travel_both_ways(both: Synced) -> None:
    for name in ("edit-here", "edit-there", "remove-here", "remove-there", "stays"):
        both.write(f"notes/{name}.md", name)
    both.sync()

    both.write("notes/edit-here.md", "edited here")
    both.hands.put("notes/edit-there.md", "edited there")
    (both.dir / "notes/remove-here.md").unlink()
    both.hands.delete("notes/remove-there.md")
    done = both.sync()

    expected = {"notes/edit-here.md": "edited here", "notes/edit-there.md": "edited there"}
    assert both.here() == both.there() == {**expected, "notes/stays.md": "stays"}
    assert (done["removedHere"], done["removedThere"]) == (
        ["notes/remove-there.md"],
        ["notes/remove-here.md"],
    )
    both.rests()


def test_a_change_beats_a_removal(both: Synced) -> None:
    both.write("a.md", "1")
    both.write("b.md", "1")
    both.sync()

    (both.dir / "a.md").unlink()
    both.hands.put("a.md", "2")
    both.write("b.md", "2")
    both.hands.delete("b.md")
    both.sync()

    assert both.here() == both.there() == {"a.md": "2", "b.md": "2"}


def test_a_conflict_leaves_both_texts_until_a_person_has_chosen(both: Synced) -> None:
    both.write("a.md", "1")
    both.sync()
    both.write("a.md", "mine")
    both.hands.put("a.md", "theirs")

    first, second = both.sync(), both.sync()

    [copy] = [path for path in both.here() if path != "a.md"]
    assert first["conflicts"] == second["conflicts"] == [{"path": "a.md", "copy": copy}]
    assert (first["ok"], both.code) == (False, 1)
    assert copy.startswith("a.conflict-")
    assert both.here() == {"a.md": "mine", copy: "theirs"}
    assert both.there() == {"a.md": "theirs"}

    both.write("a.md", "mine and theirs")
    (both.dir / copy).unlink()
    both.sync()
    assert both.here() == both.there() == {"a.md": "mine and theirs"}
    assert both.code == 0


def test_whoever_takes_the_server_s_text_ends_the_conflict_too(both: Synced) -> None:
    both.write("a.md", "mine")
    both.hands.put("a.md", "theirs")
    both.sync()
    [copy] = [path for path in both.here() if path != "a.md"]
    os.rename(both.dir / copy, both.dir / "a.md")

    assert both.sync()["ok"]
    assert both.here() == both.there() == {"a.md": "theirs"}


def test_the_server_may_move_on_while_a_person_chooses(both: Synced) -> None:
    both.write("a.md", "mine")
    both.hands.put("a.md", "theirs")
    both.sync()
    both.hands.put("a.md", "theirs again")
    both.sync()

    assert sorted(both.here().values()) == ["mine", "theirs again"]
    [copy] = [path for path in both.here() if path != "a.md"]
    both.write(copy, "worked on")
    both.hands.put("a.md", "theirs at last")
    both.sync()
    assert sorted(both.here().values()) == ["mine", "theirs at last", "worked on"]
    assert both.there() == {"a.md": "theirs at last"}


def test_pinned_and_managed_files_come_down_and_an_edit_of_them_is_set_aside(both: Synced) -> None:
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


def test_what_is_inherited_stays_away_until_it_is_overridden(both: Synced) -> None:
    both.hands.put("SOUL.md", "the template's", of="templates")
    both.sync()
    assert both.here() == {}

    both.write("SOUL.md", "my own")
    both.sync()
    assert both.there() == {"SOUL.md": "my own"}

    (both.dir / "SOUL.md").unlink()
    both.sync()
    assert (both.there(), both.here()) == ({}, {})
    assert both.hands.served()["SOUL.md"] == b"the template's"


def test_a_copy_of_what_is_inherited_makes_no_override_and_follows(both: Synced) -> None:
    both.hands.put("SOUL.md", "the template's", of="templates")
    both.write("SOUL.md", "the template's")
    both.sync()
    assert both.there() == {}

    both.hands.put("SOUL.md", "newer", of="templates")
    both.sync()
    assert (both.here(), both.there()) == ({"SOUL.md": "newer"}, {})

    both.write("SOUL.md", "mine")
    both.sync()
    assert both.there() == {"SOUL.md": "mine"}


def test_placeholders_are_edited_and_not_what_they_are_filled_with(both: Synced) -> None:
    both.hands.put("SOUL.md", "You are {{AGENT_NAME}}.")
    both.sync()
    assert both.here() == {"SOUL.md": "You are {{AGENT_NAME}}."}
    both.hands.rename("Grace")
    both.sync()
    assert "SOUL.md" not in both.done["received"]


def test_a_secret_stays_here_and_the_server_keeps_none(both: Synced) -> None:
    text = "key: AKIA" + "ABCDEFGHIJKLMNOP" + "\n"
    both.write("a.md", text)
    assert both.sync()["redacted"] == ["a.md"]
    assert both.here() == {"a.md": text}
    assert "AKIA" not in both.there()["a.md"]
    both.rests()

    both.hands.put("a.md", "another")
    both.sync()
    assert sorted(both.here().values()) == sorted([text, "another"])
    assert both.there() == {"a.md": "another"}


def test_the_kind_of_a_file_outlives_an_edit(both: Synced) -> None:
    body = {"content": "{}", "contentType": "application/json"}
    made(both.hands.http.put(both.hands.url("a.json"), json=body))
    both.sync()
    both.write("a.json", "[]")
    both.sync()
    [row] = both.rows()
    assert (row["content"], row["contentType"]) == ("[]", "application/json")


def test_names_that_are_composed_otherwise_are_the_same_file(both: Synced) -> None:
    composed = "é.md"
    both.write(unicodedata.normalize("NFD", composed), "1")
    both.sync()
    assert both.there() == {composed: "1"}
    both.hands.put(composed, "2")
    both.sync()
    assert both.here() == {unicodedata.normalize("NFD", composed): "2"}
    both.write(composed, "3")
    assert [each["path"] for each in both.sync()["leftOut"]] == [composed]
    assert both.there() == {composed: "2"}


def test_what_was_interrupted_before_it_was_noted_is_taken_up(both: Synced) -> None:
    both.write("mine.md", "mine")
    both.write("gone.md", "gone")
    both.sync()
    before = (both.dir / STATE).read_bytes()
    both.write("mine.md", "mine, edited")
    both.hands.put("theirs.md", "theirs")
    (both.dir / "gone.md").unlink()
    both.sync()
    (both.dir / STATE).write_bytes(before)  # As if it had been killed before it could note that.

    assert both.sync()["ok"]
    assert both.here() == both.there() == {"mine.md": "mine, edited", "theirs.md": "theirs"}


def test_one_directory_is_synced_by_one_at_a_time(both: Synced) -> None:
    both.sync()
    folder = SyncedDirectory(both.dir)
    try:
        told = both.sync()
    finally:
        folder.close()
    assert (both.code, told["ok"]) == (1, False)
    assert "is being synced by another" in told["problem"]
    assert both.sync()["ok"]


def test_a_directory_belongs_to_one_agent(both: Synced, http: httpx.Client) -> None:
    both.write("a.md", "mine")
    both.sync()
    other = Hands.of_new_agent(http)
    told = both.sync(agent=other.agent)
    assert (both.code, told["ok"]) == (1, False)
    assert f"is kept with {both.hands.agent}" in told["problem"]
    assert "a.md" not in other.served()


def test_another_agent_of_the_same_name_is_another_agent(both: Synced) -> None:
    both.write("a.md", "mine")
    both.sync()
    http, agent = both.hands.http, both.hands.agent
    assert http.delete(f"/v1/agents/{agent}").status_code == 204
    made(http.post("/v1/agents", json={"slug": agent, "name": "B"}))
    assert "is kept with" in both.sync()["problem"]
    assert both.here() == {"a.md": "mine"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2, "server": "", "agent": ""}'])
def test_a_note_that_is_none_of_ours_is_refused(both: Synced, text: str) -> None:
    both.write("a.md", "mine")
    both.write(STATE, text)
    assert both.sync()["ok"] is False
    assert STATE in both.done["problem"]
    assert (both.dir / STATE).read_text("utf-8") == text


def test_a_forged_note_leads_nowhere_else(both: Synced) -> None:
    outside = both.dir.parent / "x.conflict-00000000.md"
    outside.write_text("not mine")
    both.sync()
    state = json.loads((both.dir / STATE).read_text("utf-8"))
    for path, copy in (("../y.md", None), ("a.md", "../x.conflict-00000000.md")):
        known = {"here": None, "there": "0" * 64, "copy": copy}
        both.write(STATE, json.dumps({**state, "files": {path: known}}))
        both.hands.put("a.md", "theirs")
        both.sync()
    assert outside.read_text("utf-8") == "not mine"


def test_a_text_whose_answer_was_lost_is_known_again_and_makes_no_conflict(both: Synced) -> None:
    both.sync()
    state = json.loads((both.dir / STATE).read_text("utf-8"))
    both.hands.put("a.md", "on its way")
    both.write("a.md", "edited since")
    sent = sha256(b"on its way").hexdigest()
    both.write(STATE, json.dumps({**state, "sending": {"a.md": sent}}))

    assert both.sync()["sent"] == ["a.md"]
    assert both.here() == both.there() == {"a.md": "edited since"}
    assert json.loads((both.dir / STATE).read_text("utf-8"))["sending"] == {}
