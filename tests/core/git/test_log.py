"""Commits for git: the same wherever they are made, and nothing in them that git would choke on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dulwich.objects import Commit, ShaFile, Tag, Tree
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.git.log import (
    PRUNED,
    Checkpoint,
    StoreCommit,
    commit_of,
    holdable,
    revision_of,
    revisions,
    tag_of,
    who,
)
from carrel.core.git.objects import GitObject, blob, made, read_commit, read_tree, tree
from carrel.core.git.tree_builder import GitTreeBuilder
from carrel.core.identifiers import Path
from carrel.core.store.tree import Head, Version

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
NOW = 1_800_000_000_123
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1
)
segments = st.sampled_from(["a", "b", "a.md", "a-", "A", "é", "a b"])
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)
ids = st.binary(min_size=20, max_size=20).map(bytes.hex)


def version(revision: int = 3, number: int = 1, path: str = "a", **said: Any) -> Version:
    told = {"by": "per_1", "why": "to see", "run": None, **said}
    head = Head(Path(path), number, revision, NOW, None)
    return Version(head, **told)


def commit(*, parent: str | None = None, pruned: bool = False, **said: Any) -> GitObject:
    return commit_of(StoreCommit((version(**said),)), EMPTY, parent, str, pruned=pruned)


def as_dulwich(one: GitObject) -> ShaFile:
    """What an independent reader makes of it; it also says what the id must be."""
    number = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}[one.kind]
    found = ShaFile.from_raw_string(number, one.body)
    assert found.id.decode() == one.id
    found.check()
    return found


def test_a_commit_says_who_when_and_why() -> None:
    found = as_dulwich(commit(why="tidy up\n\nIt was a mess.", run="run_7"))
    assert isinstance(found, Commit)
    assert found.author == b"per_1 <per_1@carrel.invalid>"
    assert found.committer == b"Carrel <carrel@carrel.invalid>"
    assert (found.author_time, found.commit_time) == (1_800_000_000, 1_800_000_000)
    assert (found.author_timezone, found.commit_timezone) == (0, 0)
    text = "tidy up\n\nIt was a mess.\n\nCarrel-Run: run_7\nCarrel-Revision: 3\n"
    assert found.message.decode() == text


def test_the_same_is_the_same_for_ever() -> None:
    assert commit().id == "db16b25b336fa2cec64a5654b9c18732d020f37a"
    assert commit(parent=commit().id).id != commit().id


def test_a_first_commit_tells_if_others_were_before_it() -> None:
    assert PRUNED in commit(pruned=True).body.decode()
    assert PRUNED not in commit().body.decode()


@given(st.text(), st.text(), st.none() | st.text())
def test_whatever_was_said_becomes_a_commit_that_git_takes(
    by: str, why: str, run: str | None
) -> None:
    one = commit(by=by, why=why, run=run)
    as_dulwich(one)
    found = read_commit(one)
    assert revision_of(found.message) == 3
    assert found.subject.strip()
    assert "\0" not in found.message
    assert re.fullmatch(r"[^<>\n\0]+ <[^<>\n\0 ]+>", found.author)
    assert (found.tree, found.parents, found.seconds) == (EMPTY, (), NOW // 1000)


@given(st.text())
def test_nobody_can_pass_for_another_revision(why: str) -> None:
    for said in (f"{why}\nCarrel-Revision: 99", f"Carrel-Revision: 99\n{why}", why):
        assert revision_of(read_commit(commit(why=said)).message) == 3


@pytest.mark.parametrize(
    "text", ["", "Carrel-Revision: 1\n\nmore", "Carrel-Revision: x", "Carrel-Revision: ²"]
)
def test_what_is_not_ours_has_no_revision(text: str) -> None:
    assert revision_of(text) is None


@given(st.text())
def test_whoever_it_was_has_a_name_and_an_address(by: str) -> None:
    assert re.fullmatch(r"[^<>\s\0]+ <[^<>\s\0]+@carrel\.invalid>", who(by))


def test_what_a_commit_said_is_redacted_on_the_way() -> None:
    one = commit_of(
        StoreCommit((version(why="the swordfish"),)), EMPTY, None, _no_fish, pruned=False
    )
    assert b"swordfish" not in one.body
    tag = tag_of(Checkpoint(3, NOW, "per_1", "swordfish"), one.id, _no_fish)
    assert b"swordfish" not in tag.body


def _no_fish(text: str) -> str:
    return text.replace("swordfish", "[REDACTED:fish]")


def test_a_checkpoint_becomes_a_tag_with_its_note() -> None:
    found = as_dulwich(tag_of(Checkpoint(12, NOW, "key_2", "before the move"), commit().id, str))
    assert isinstance(found, Tag)
    assert (found.name, found.message) == (b"checkpoint/12", b"checkpoint: before the move\n")
    assert found.tagger == b"key_2 <key_2@carrel.invalid>"
    assert found.object == (Commit, commit().id.encode())


def test_versions_come_by_the_commits_that_they_came_with() -> None:
    said = [version(1, path="a"), version(1, path="b"), version(4), version(5), version(5, 2)]
    assert [(one.revision, len(one.versions)) for one in revisions(said)] == [
        (1, 2),
        (4, 1),
        (5, 2),
    ]


@given(st.dictionaries(names, ids), st.dictionaries(names, ids))
def test_a_tree_is_as_git_sorts_it_and_reads_back(
    files: dict[str, str], folders: dict[str, str]
) -> None:
    files = {name: id for name, id in files.items() if name not in {*folders, ".", "..", ".git"}}
    one = tree(files, folders)
    meant = Tree()
    for mode, some in ((0o100644, files), (0o40000, folders)):
        for name, id in some.items():
            meant.add(name.encode(), mode, id.encode())  # type: ignore[arg-type]
    assert meant.id.decode() == one.id
    read = {(is_folder, name): id for is_folder, name, id in read_tree(one.body)}
    assert read == {
        **{(False, name): id for name, id in files.items()},
        **{(True, name): id for name, id in folders.items()},
    }


def whole(files: dict[str, str]) -> str:
    """The tree of some files, made at once."""
    grove = GitTreeBuilder()
    for path, id in files.items():
        grove.put(path, id)
    grove.grown()
    return grove.root


@given(st.lists(st.tuples(paths, st.none() | ids), max_size=12))
def test_a_grove_that_grew_is_one_that_was_planted(steps: list[tuple[str, str | None]]) -> None:
    grove, files, objects = GitTreeBuilder(), dict[str, str](), dict[str, GitObject]()
    for path, id in steps:
        grove.put(path, id)
        files.pop(path, None)
        if id is not None:
            files[path] = id
        objects |= {one.id: one for one in grove.grown()}
        assert grove.root == whole(files)
        assert _files(objects, grove.root) == _shown(files)


def _files(objects: dict[str, GitObject], root: str, under: str = "") -> dict[str, str]:
    """What a reader finds who has only the trees that were ever given out."""
    found: dict[str, str] = {}
    for is_folder, name, id in read_tree(objects[root].body):
        if is_folder:
            found |= _files(objects, id, f"{under}{name}/")
        else:
            found[under + name] = id
    return found


def _shown(files: dict[str, str]) -> dict[str, str]:
    """Git cannot hold a file where there is a folder."""
    return {
        path: id
        for path, id in files.items()
        if not any(other.startswith(f"{path}/") for other in files)
    }


def test_nothing_at_all_is_the_empty_tree() -> None:
    assert whole({}) == EMPTY
    assert blob(b"").id == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert made("blob", b"x").body == b"x"


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
def test_git_is_never_given_what_it_would_act_on(path: str) -> None:
    assert not holdable(Path(path))


@pytest.mark.parametrize("path", ["a.git", "git/x.md", ".gitignore", ".github/x.yml", "~/git~x"])
def test_what_only_looks_like_it_is_held(path: str) -> None:
    assert holdable(Path(path))
