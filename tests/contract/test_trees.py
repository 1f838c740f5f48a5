"""Contract of TreeStore: reading trees, layers, versions and histories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import pytest
from tests.support.commits import (
    AGENT,
    DEFAULTS,
    FOREIGN_AGENT,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    commit,
    entry,
    put_text,
    read_texts,
    version_numbers,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry, Head, Version
from carrel.core.store.tree import Tree

pytestmark = pytest.mark.anyio


async def test_an_unknown_scope_is_empty(ports: Ports) -> None:
    [current, at_revision] = await ports.trees.read([AGENT, SnapshotLayer(AGENT, 3)])

    assert (current, at_revision) == (Tree(AGENT, 0, {}), Tree(AGENT, 3, {}))
    assert await ports.trees.revisions([AGENT]) == (0,)
    assert await ports.trees.history(AGENT, SOUL) == ()
    assert await ports.trees.versions([(AGENT, SOUL, 1)]) == (None,)


async def test_reading_no_layer_or_no_path_returns_nothing(ports: Ports) -> None:
    head = await put_text(ports, "kind")

    assert await ports.trees.read([]) == ()
    assert await ports.trees.read([AGENT], []) == (Tree(AGENT, head.revision, {}),)
    assert await ports.trees.revisions([]) == ()
    assert await ports.trees.versions([]) == ()


async def test_a_put_file_is_read_with_all_its_fields(ports: Ports) -> None:
    written = await entry(ports, "kind", base="strict", type="text/plain")
    await ports.trees.commit([commit(Write(AGENT, SOUL, written), at=NOW + 5)])

    [tree] = await ports.trees.read([AGENT])

    assert tree == Tree(AGENT, 1, {SOUL: Head(SOUL, 1, 1, NOW + 5, written)})
    assert tree.entry(SOUL) == written
    assert written.base
    assert written.base == tree.heads[SOUL].entry.base  # type: ignore[union-attr]


async def test_a_tree_is_returned_for_each_requested_layer_in_order(ports: Ports) -> None:
    await put_text(ports, "mine", AGENT)
    await put_text(ports, "ours", TEMPLATE)

    trees = await ports.trees.read([TEMPLATE, DEFAULTS, AGENT, TEMPLATE, SnapshotLayer(AGENT, 0)])

    assert [tree.scope for tree in trees] == [TEMPLATE, DEFAULTS, AGENT, TEMPLATE, AGENT]
    assert [len(tree.heads) for tree in trees] == [1, 0, 1, 1, 0]
    assert await ports.trees.revisions([DEFAULTS, TEMPLATE, AGENT, TEMPLATE]) == (0, 1, 1, 1)


async def test_equal_names_in_two_tenants_are_two_scopes(ports: Ports) -> None:
    await put_text(ports, "ours", AGENT)
    await put_text(ports, "theirs", FOREIGN_AGENT)

    assert await read_texts(ports, AGENT) == {"SOUL.md": "ours"}
    assert await read_texts(ports, FOREIGN_AGENT) == {"SOUL.md": "theirs"}
    assert await version_numbers(ports, FOREIGN_AGENT) == [1]


async def test_paths_requested_by_name_include_tombstones(ports: Ports) -> None:
    await put_text(ports, "kind", path=SOUL)
    await put_text(ports, "strict", path=RULES)
    deleted = await put_text(ports, None, path=RULES)
    await put_text(ports, "other", path=Path("other.md"))

    [tree] = await ports.trees.read([AGENT], [SOUL, RULES, Path("never.md")])

    assert set(tree.heads) == {SOUL, RULES}
    assert tree.heads[RULES] == deleted == Head(RULES, 2, 3, NOW, None)
    assert (tree.version(SOUL), tree.version(RULES), tree.version(Path("never.md"))) == (1, 2, 0)


async def test_without_paths_only_live_files_are_read(ports: Ports) -> None:
    await put_text(ports, "kind", path=SOUL)
    await put_text(ports, "strict", path=RULES)
    await put_text(ports, None, path=RULES)

    assert await read_texts(ports, AGENT) == {"SOUL.md": "kind"}


PREFIXES: Final[Mapping[str, set[str]]] = {
    "": {"a%b", "a/one", "a/two", "ab", "a_b", "axb", "A/one", "é/é", "\U0010ffff"},
    "a/": {"a/one", "a/two"},
    "a/one": {"a/one"},
    "a/one/": set(),
    "a_": {"a_b"},
    "a%": {"a%b"},
    "A": {"A/one"},
    "é": {"é/é"},
    "\U0010ffff": {"\U0010ffff"},
    "b": set(),
}


async def test_a_prefix_matches_like_starts_with(ports: Ports) -> None:
    writes = [await write(ports, name, path=Path(name)) for name in PREFIXES[""]]
    await ports.trees.commit([commit(*writes)])

    for prefix, expected in PREFIXES.items():
        assert set(await read_texts(ports, AGENT, prefix=prefix)) == expected, prefix
        assert set(await read_texts(ports, SnapshotLayer(AGENT, 1), prefix=prefix)) == expected, (
            prefix
        )
    for name in ("a/three", "ab", "\U0010ffff"):
        await put_text(ports, "later", path=Path(name))
    for prefix, expected in PREFIXES.items():
        assert set(await read_texts(ports, SnapshotLayer(AGENT, 1), prefix=prefix)) == expected, (
            prefix
        )


async def test_a_layer_is_read_as_it_was_at_its_revision(ports: Ports) -> None:
    await put_text(ports, "one")
    await put_text(ports, "strict", path=RULES)
    await put_text(ports, "two")
    await put_text(ports, None)
    await put_text(ports, "three")

    read = [await read_texts(ports, SnapshotLayer(AGENT, revision)) for revision in range(6)]

    strict = {"GUARDRAILS.md": "strict"}
    assert read == [
        {},
        {"SOUL.md": "one"},
        {"SOUL.md": "one"} | strict,
        {"SOUL.md": "two"} | strict,
        strict,
        {"SOUL.md": "three"} | strict,
    ]


async def test_a_layer_has_its_own_revision_and_the_heads_at_that_revision(ports: Ports) -> None:
    created = await put_text(ports, "one")
    deleted = await put_text(ports, None)
    await put_text(ports, "three")

    first, second = await ports.trees.read(
        [SnapshotLayer(AGENT, 1), SnapshotLayer(AGENT, 2)], [SOUL, RULES]
    )

    assert first == Tree(AGENT, 1, {SOUL: created})
    assert second == Tree(AGENT, 2, {SOUL: deleted})


async def test_one_read_shows_all_scopes_at_one_moment(ports: Ports) -> None:
    async def writer() -> None:
        for turn in range(40):
            text = str(turn)
            writes = [await write(ports, text, scope) for scope in (AGENT, TEMPLATE, DEFAULTS)]
            await ports.trees.commit([commit(*writes)])

    async def reader(writing: asyncio.Task[None]) -> list[tuple[Tree, ...]]:
        reads = [await ports.trees.read([DEFAULTS, AGENT, TEMPLATE])]
        while not writing.done():
            reads.append(await ports.trees.read([DEFAULTS, AGENT, TEMPLATE], [SOUL]))
            await asyncio.sleep(0)
            reads.append(await ports.trees.read([DEFAULTS, AGENT, TEMPLATE]))
        return reads

    writing = asyncio.create_task(writer())
    reads = await reader(writing)
    await writing

    for trees in reads:
        assert len({tree.revision for tree in trees}) == 1
        assert len({tree.version(SOUL) for tree in trees}) == 1
        assert all(tree.version(SOUL) == tree.revision for tree in trees)
    assert len({trees[0].revision for trees in reads}) > 1


async def test_a_tree_that_was_read_does_not_change(ports: Ports) -> None:
    await put_text(ports, "one")
    [before] = await ports.trees.read([AGENT])
    copy = Tree(before.scope, before.revision, dict(before.heads))

    await put_text(ports, "two")
    await put_text(ports, "strict", path=RULES)

    assert before == copy


async def test_versions_are_read_by_number_including_tombstones(ports: Ports) -> None:
    first = await entry(ports, "one")
    await ports.trees.commit(
        [commit(Write(AGENT, SOUL, first), author="ada", reason="first", run="run_1")]
    )
    await put_text(ports, None, author="bob", reason="enough", at=NOW + 1)

    requested = [(AGENT, SOUL, 2), (AGENT, SOUL, 1), (AGENT, SOUL, 3), (AGENT, RULES, 1)]
    versions = await ports.trees.versions([*requested, (FOREIGN_AGENT, SOUL, 1), (AGENT, SOUL, 0)])

    assert versions == (
        Version(Head(SOUL, 2, 2, NOW + 1, None), "bob", "enough", None),
        Version(Head(SOUL, 1, 1, NOW, first), "ada", "first", "run_1"),
        *(None, None, None, None),
    )


async def test_history_is_newest_first_in_pages(ports: Ports) -> None:
    for text in ("one", "two", None, "four", "five"):
        await put_text(ports, text)
    await put_text(ports, "strict", path=RULES)

    history = await ports.trees.history(AGENT, SOUL)
    page = await ports.trees.history(AGENT, SOUL, before=5, limit=2)
    rest = await ports.trees.history(AGENT, SOUL, before=3, limit=2)

    assert [version.head.version for version in history] == [5, 4, 3, 2, 1]
    assert [bool(version.head.entry) for version in history] == [True, True, False, True, True]
    assert (page, rest) == (history[1:3], history[3:])
    assert await ports.trees.history(AGENT, SOUL, before=1) == ()


async def test_an_empty_file_exists(ports: Ports) -> None:
    await put_text(ports, "")

    assert await read_texts(ports, AGENT) == {"SOUL.md": ""}
    [tree] = await ports.trees.read([AGENT], [SOUL])
    assert tree.entry(SOUL)


async def test_content_of_one_scope_can_be_written_into_another(ports: Ports) -> None:
    """This is how a file is pinned: the inherited content becomes both content and base."""
    await put_text(ports, "strict", TEMPLATE, RULES)
    [template] = await ports.trees.read([TEMPLATE], [RULES])
    inherited = template.entry(RULES)
    assert inherited

    pin = Entry(inherited.blob, inherited.blob, inherited.type)
    await ports.trees.commit([commit(Write(AGENT, RULES, pin))])
    await put_text(ports, "lax", TEMPLATE, RULES)

    [agent] = await ports.trees.read([AGENT])
    assert agent.entry(RULES) == pin
    assert await read_texts(ports, AGENT) == {"GUARDRAILS.md": "strict"}
    read = agent.heads[RULES].entry
    assert read and read.base
    assert await ports.blobs.get([read.base]) == {inherited.blob.digest: b"strict"}


async def test_a_listing_follows_writes_in_every_scope(ports: Ports) -> None:
    stack = (AGENT, TEMPLATE, DEFAULTS)
    for number in range(3):
        for scope in stack:
            before = await ports.trees.read(stack)
            await put_text(ports, f"{scope.kind} {number}", scope, RULES)
            after = await ports.trees.read(stack)
            assert [tree.revision for tree in after] != [tree.revision for tree in before]
            [changed] = [tree for tree in after if tree.scope == scope]
            assert changed.version(RULES) == number + 1
            assert after == await ports.trees.read(stack)
    await put_text(ports, None, AGENT, RULES)
    assert (await ports.trees.read(stack))[0].heads == {}
