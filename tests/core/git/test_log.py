"""Drafts of git commits and tags: stable, printable, with an unforgeable revision."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.git.log import (
    PRUNED_NOTE,
    Checkpoint,
    CommitDraft,
    GitCommit,
    StoreCommit,
    TagDraft,
    can_hold,
    draft_commit,
    draft_tag,
    git_author,
    group_by_revision,
    parse_revision,
)
from carrel.core.identifiers import Path
from carrel.core.store.entry import Head, Version

NOW = 1_800_000_000_123


def version(revision: int = 3, number: int = 1, path: str = "a", **changed: Any) -> Version:
    fields = {"author": "per_1", "reason": "to see", "run": None, **changed}
    return Version(Head(Path(path), number, revision, NOW, None), **fields)


def draft(*, pruned: bool = False, **changed: Any) -> CommitDraft:
    return draft_commit(StoreCommit((version(**changed),)), str, pruned=pruned)


def test_a_commit_names_author_time_reason_run_and_revision() -> None:
    text = "tidy up\n\nIt was a mess.\n\nCarrel-Run: run_7\nCarrel-Revision: 3\n"
    assert draft(reason="tidy up\n\nIt was a mess.", run="run_7") == CommitDraft(
        "per_1 <per_1@carrel.invalid>", NOW, text.encode()
    )


def test_a_first_commit_notes_that_older_versions_are_pruned() -> None:
    assert PRUNED_NOTE in draft(pruned=True).message.decode()
    assert PRUNED_NOTE not in draft().message.decode()


@given(st.text(), st.text(), st.none() | st.text())
def test_any_author_reason_and_run_give_a_valid_commit(
    author: str, text: str, run: str | None
) -> None:
    commit = draft(author=author, reason=text, run=run)
    message = commit.message.decode()
    assert parse_revision(message) == 3
    assert message.partition("\n")[0].strip()
    assert "\0" not in message
    assert re.fullmatch(r"[^<>\n\0]+ <[^<>\n\0 ]+>", commit.author)


@given(st.text())
def test_a_reason_cannot_forge_a_revision(text: str) -> None:
    for reason in (f"{text}\nCarrel-Revision: 99", f"Carrel-Revision: 99\n{text}", text):
        assert parse_revision(draft(reason=reason).message.decode()) == 3


@pytest.mark.parametrize(
    "text", ["", "Carrel-Revision: 1\n\nmore", "Carrel-Revision: x", "Carrel-Revision: ²"]
)
def test_a_message_without_a_trailer_has_no_revision(text: str) -> None:
    assert parse_revision(text) is None


@given(st.text())
def test_every_author_has_a_name_and_an_address(author: str) -> None:
    assert re.fullmatch(r"[^<>\s\0]+ <[^<>\s\0]+@carrel\.invalid>", git_author(author))


def test_messages_of_commits_and_tags_are_redacted() -> None:
    commit = draft_commit(StoreCommit((version(reason="the swordfish"),)), _redact_fish)
    assert b"swordfish" not in commit.message
    tag = draft_tag(Checkpoint(3, NOW, "per_1", "swordfish"), _redact_fish)
    assert b"swordfish" not in tag.message


def _redact_fish(text: str) -> str:
    return text.replace("swordfish", "[REDACTED:fish]")


def test_a_checkpoint_becomes_a_tag_with_its_note() -> None:
    assert draft_tag(Checkpoint(12, NOW, "key_2", "before the move"), str) == TagDraft(
        "checkpoint/12",
        "key_2 <key_2@carrel.invalid>",
        NOW,
        b"checkpoint: before the move\n",
    )


def test_a_parsed_commit_has_a_subject_and_a_body() -> None:
    commit = GitCommit("1", "2", (), "ada <ada@x>", 1, "tidy up\n\nIt was\na mess.\n")
    assert (commit.subject, commit.body) == ("tidy up", "It was\na mess.")


def test_versions_are_grouped_by_their_commit() -> None:
    versions = [version(1, path="a"), version(1, path="b"), version(4), version(5), version(5, 2)]
    assert [(commit.revision, len(commit.versions)) for commit in group_by_revision(versions)] == [
        (1, 2),
        (4, 1),
        (5, 2),
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/hooks/post-checkout",
        "a/.GIT/config",
        ".Git ",
        ".git.",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u200cit/config",
        "\u200e.git",
        "git~1/config",
        "GIT~2",
        ".gitmodules",
        "GITMOD~1",
        "gi7eba~1",
        ".gitattributes",
        "notes/.GitAttributes",
    ],
)
def test_a_path_that_git_acts_on_is_excluded(path: str) -> None:
    assert not can_hold(Path(path))


@pytest.mark.parametrize("path", ["a.git", "git/x.md", ".gitignore", ".github/x.yml", "~/git~x"])
def test_a_path_that_only_resembles_a_git_path_is_included(path: str) -> None:
    assert can_hold(Path(path))
