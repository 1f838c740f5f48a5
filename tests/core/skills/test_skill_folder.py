"""Skills of a workspace and their digests."""

from __future__ import annotations

import hashlib

from hypothesis import assume, given
from hypothesis import strategies as st

from carrel.core.identifiers import Path, Scope, ScopeKind, digest
from carrel.core.overlay.compose import File, compose
from carrel.core.runs import Audience
from carrel.core.skills.skill_folder import (
    are_skills_visible,
    compute_skill_digest,
    group_skills,
    split_skill_path,
)
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree

SCOPE = Scope("t", ScopeKind.TEMPLATE, "support")
contents = st.dictionaries(
    st.sampled_from(["SKILL.md", "scripts/run.sh", "a", "a/b", "é", "A", "a\tb"]),
    st.binary(max_size=4),
    min_size=1,
)


def files(texts: dict[str, bytes]) -> dict[Path, File]:
    heads = {
        Path(path): Head(Path(path), 1, 1, 0, Entry(Blob(digest(text), len(text))))
        for path, text in texts.items()
    }
    return dict(compose((Tree(SCOPE, 1, heads),)).files)


def test_the_digest_is_that_of_agent_skills_discovery() -> None:
    digests = {"scripts/run.sh": digest(b"#!/bin/sh\n"), "SKILL.md": digest(b"# Hello\n")}
    expected = "34f7a8c484e9991f3e71a309f31332d6335efc01f544105c4185a7c4ab12eb1e"
    assert compute_skill_digest(digests) == f"sha256:{expected}"


@given(contents, contents)
def test_digests_are_equal_only_for_equal_paths_and_contents(
    first: dict[str, bytes], second: dict[str, bytes]
) -> None:
    digests = [
        compute_skill_digest({path: digest(text) for path, text in folder.items()})
        for folder in (first, dict(reversed(first.items())), second)
    ]
    assert digests[0] == digests[1]
    assert (digests[0] == digests[2]) == (first == second)


@given(contents)
def test_the_digest_does_not_depend_on_where_the_skill_lies(texts: dict[str, bytes]) -> None:
    assume(not {"a", "a/b"} <= texts.keys() and "a\tb" not in texts)
    placed = {f"skills/pdf/{path}": text for path, text in texts.items()}
    [skill] = group_skills(files({**placed, "skills/README.md": b"", "skill/x/SKILL.md": b""}))
    lines = "".join(
        f"{path}\0{hashlib.sha256(texts[path]).hexdigest()}\n"
        for path in sorted(texts, key=str.encode)
    )
    assert skill.digest == f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def test_skills_are_the_folders_below_skills() -> None:
    texts = ["skills/b/SKILL.md", "skills/a/x/y", "skills/README.md", "docs/skills/c/SKILL.md"]
    skills = group_skills(files(dict.fromkeys(texts, b"")))
    assert [(skill.name, list(skill.files)) for skill in skills] == [
        ("a", ["x/y"]),
        ("b", ["SKILL.md"]),
    ]
    assert [skill.main_file is not None for skill in skills] == [False, True]
    assert split_skill_path(Path("skills")) is None


def test_a_shared_session_sees_only_the_skills_of_shared_workspaces() -> None:
    assert are_skills_visible(Audience.MAIN)
    assert not are_skills_visible(Audience.SHARED)
    assert are_skills_visible(Audience.SHARED, is_shared_workspace=True)
