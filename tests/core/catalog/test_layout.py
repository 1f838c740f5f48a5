"""The catalog: keys that are read as they were written, and what stands under each."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies_trees import blob

from carrel.core.catalog import layout
from carrel.core.catalog.layout import (
    DEFAULTS_SLUG,
    AgentFileKey,
    CatalogAgent,
    CatalogKey,
    CatalogLayer,
    ReviewedFileKey,
    TemplateFileKey,
    format_timestamp,
    parse_key,
)
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, digest
from carrel.core.overlay.agent_files import RenderContext
from carrel.core.overlay.file_classes import ClassRule, FileClass, FileClassRules
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree
from carrel.core.text_validation import parse_unreserved_slug

CLASSES = FileClassRules((ClassRule("rules/*", FileClass.PINNED),))
SCOPE = Scope("ten_1", ScopeKind.AGENT, "agt_1")
HEX = "0123456789abcdef" * 4
AGENTS = "tenants/acme/agents"


def _is_path(text: str) -> bool:
    try:
        Path(text)
    except ValidationError:
        return False
    return True


slugs = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
paths = st.lists(st.text(min_size=1, max_size=5).filter(_is_path), min_size=1, max_size=3).map(
    lambda parts: Path("/".join(parts))
)
digests = st.binary(max_size=2).map(digest)
keys: st.SearchStrategy[CatalogKey] = (
    st.builds(AgentFileKey, slugs, slugs, paths)
    | st.builds(TemplateFileKey, slugs, slugs, paths)
    | st.builds(ReviewedFileKey, slugs, slugs, paths, digests)
)


def tree(files: Mapping[str, Entry | None]) -> Tree:
    heads = {Path(p): Head(Path(p), 1, 1, 1000 * at, e) for at, (p, e) in enumerate(files.items())}
    return Tree(SCOPE, 1, heads)


def marco(files: Mapping[str, Entry | None], template: str = "sales") -> layout.CatalogPlan:
    return layout.plan_agent("acme", CLASSES, CatalogAgent("marco", tree(files), 7, template))


def own_files(plan: layout.CatalogPlan) -> set[str]:
    parsed = [parse_key(key) for key in plan]
    own = {str(key.path) for key in parsed if isinstance(key, AgentFileKey)}
    return own - {"manifest.json"}


@given(keys)
def test_a_key_is_read_as_it_was_written(key: CatalogKey) -> None:
    assert parse_key(key.text) == key
    assert key.text.startswith(layout.tenant_prefix(key.tenant))


@given(st.lists(keys, max_size=20))
def test_no_two_keys_are_written_alike(some: list[CatalogKey]) -> None:
    assert len({key.text for key in some}) == len(set(some))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (AgentFileKey("acme", "marco", Path("memory/a.md")), "marco/workspace/memory/a.md"),
        (TemplateFileKey("acme", "sales", Path("SOUL.md")), "_catalog/sales/workspace/SOUL.md"),
        (TemplateFileKey("acme", DEFAULTS_SLUG, Path("A.md")), "_catalog/defaults/workspace/A.md"),
        (
            ReviewedFileKey("acme", "sales", Path("A.md"), digest(b"x")),
            f"_catalog/sales/workspace-versions/A.md@{digest(b'x')}",
        ),
    ],
)
def test_keys_are_those_of_the_layout(key: CatalogKey, text: str) -> None:
    assert key.text == f"{AGENTS}/{text}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tenants/acme/agents/marco/SOUL.md",
        "tenants/acme/skills/marco/workspace/SOUL.md",
        "tenants/acme/agents/marco/workspace/",
        "tenants/acme/agents/marco/workspace/../SOUL.md",
        "tenants/acme/agents/marco/workspace//SOUL.md",
        "tenants/acme/agents/Marco/workspace/SOUL.md",
        "tenants/acme/agents/_catalog/workspace/SOUL.md",
        f"tenants/acme/agents/_catalog/sales/workspace-versions/A.md@{HEX}",
        f"tenants/acme/agents/_catalog/sales/workspace-versions/A.md@sha256:{HEX[1:]}",
        "tenants/acme/agents/_catalog/sales/workspace-versions/A.md",
        "tenants/acme/agents/marco/workspace/e\u0301.md",
        "x/tenants/acme/agents/marco/workspace/SOUL.md",
        "tenants/acme/agents/marco/workspace/SOUL.md\n",
    ],
)
def test_what_is_no_key_of_the_layout_is_none_of_ours(text: str) -> None:
    assert parse_key(text) is None


@pytest.mark.parametrize("slug", ["defaults", "_catalog"])
def test_no_agent_and_no_template_can_be_called_like_a_part_of_the_layout(slug: str) -> None:
    with pytest.raises(ValidationError):
        parse_unreserved_slug(slug)


def test_overrides_and_managed_files_stand_in_an_agents_workspace_and_pins_do_not() -> None:
    one, two = blob("one"), blob("two")
    plan = marco(
        {
            "GUARDRAILS.md": Entry(one, one),
            "PLATFORM.md": Entry(two, one),
            "CAPABILITIES.md": Entry(two),
            "USER.md": Entry(one, one),
            "SOUL.md": Entry(two, one),
            "loosened.md": Entry(one, one),
            "empty.md": Entry(blob(""), one),
            "gone.md": None,
            "rules/a.md": Entry(one, one),
        }
    )

    assert own_files(plan) == {
        *("PLATFORM.md", "CAPABILITIES.md", "USER.md", "SOUL.md", "empty.md")
    }
    assert plan[f"{AGENTS}/marco/workspace/PLATFORM.md"] == two
    reviewed = {
        str(k.path): plan[k.text] for k in map(parse_key, plan) if isinstance(k, ReviewedFileKey)
    }
    assert reviewed == {"GUARDRAILS.md": one, "PLATFORM.md": one, "rules/a.md": one}


def test_what_an_agent_was_made_with_stands_until_it_holds_something_else() -> None:
    first = tree({name: Entry(blob("one"), blob("one")) for name in ("GUARDRAILS.md", "SOUL.md")})
    accepted = {"GUARDRAILS.md": Entry(blob("two"), blob("two"))}
    overridden = {"GUARDRAILS.md": Entry(blob("mine"), blob("two"))}

    def reviewed(files: Mapping[str, Entry | None]) -> set[str]:
        own = CatalogAgent("marco", tree(files), 7, "sales", first)
        found = map(parse_key, layout.plan_agent("acme", CLASSES, own))
        return {f"{k.path} {k.digest}" for k in found if isinstance(k, ReviewedFileKey)}

    assert reviewed({}) == {f"GUARDRAILS.md {digest(b'one')}"}
    assert reviewed(accepted) == reviewed(overridden) == {f"GUARDRAILS.md {digest(b'two')}"}
    assert reviewed({"GUARDRAILS.md": None}) == reviewed({})


def test_pins_stand_under_the_template_that_is_followed_or_under_the_defaults() -> None:
    pin = {"GUARDRAILS.md": Entry(blob("one"), blob("one"))}
    name = f"workspace-versions/GUARDRAILS.md@{digest(b'one')}"

    assert f"{AGENTS}/_catalog/sales/{name}" in marco(pin)
    assert f"{AGENTS}/_catalog/defaults/{name}" in marco(pin, DEFAULTS_SLUG)


def test_a_templates_own_files_stand_there_and_its_pinned_ones_by_digest_too() -> None:
    files = {"GUARDRAILS.md": Entry(blob("one")), "SOUL.md": Entry(blob("two")), "x": None}

    plan = layout.plan_layer("acme", CLASSES, CatalogLayer("sales", tree(files)))

    assert plan == {
        f"{AGENTS}/_catalog/sales/workspace/GUARDRAILS.md": blob("one"),
        f"{AGENTS}/_catalog/sales/workspace/SOUL.md": blob("two"),
        f"{AGENTS}/_catalog/sales/workspace-versions/GUARDRAILS.md@{digest(b'one')}": blob("one"),
    }


def test_the_defaults_tell_the_version_they_were_seeded_with_where_that_is_known() -> None:
    key = f"{AGENTS}/_catalog/defaults/workspace/_defaults_version"
    layer = CatalogLayer(
        DEFAULTS_SLUG, tree({"_defaults_version": Entry(blob("99")), "a": Entry(blob("a"))})
    )

    assert layout.plan_layer("acme", CLASSES, layer, 12)[key] == b"12"
    assert key not in layout.plan_layer("acme", CLASSES, layer)
    assert layout.omitted_paths(layer.tree) == (Path("_defaults_version"),)


def test_a_file_that_is_called_like_a_part_of_the_layout_is_left_out_and_told() -> None:
    files = {"manifest.json": Entry(blob("mine")), "docs/manifest.json": Entry(blob("other"))}

    plan = marco(files)

    made = plan[f"{AGENTS}/marco/workspace/manifest.json"]
    assert isinstance(made, bytes)
    assert [file["path"] for file in json.loads(made)["files"]] == ["docs/manifest.json"]
    assert layout.omitted_paths(tree(files)) == (Path("manifest.json"),)
    layer = layout.plan_layer("acme", CLASSES, CatalogLayer("sales", tree(files)))
    assert set(layer) == {f"{AGENTS}/_catalog/sales/workspace/docs/manifest.json"}


def test_a_manifest_tells_what_stands_beside_it_as_of_its_newest_change() -> None:
    files = {"b.md": Entry(blob("one")), "GUARDRAILS.md": Entry(blob("x"), blob("x"))}
    files |= {"a.md": Entry(blob("three")), "memory/é.md": Entry(blob(""))}

    made = marco(files)[f"{AGENTS}/marco/workspace/manifest.json"]

    assert isinstance(made, bytes)
    assert json.loads(made) == {
        "version": 1,
        "generated_at": "1970-01-01T00:00:03.000Z",
        "files": [
            _told("a.md", b"three", "1970-01-01T00:00:02.000Z"),
            _told("b.md", b"one", "1970-01-01T00:00:00.000Z"),
            _told("memory/é.md", b"", "1970-01-01T00:00:03.000Z"),
        ],
    }


def _told(path: str, content: bytes, at: str) -> dict[str, object]:
    return {"path": path, "etag": digest(content), "size": len(content), "last_modified": at}


def test_an_agent_without_files_has_a_manifest_from_when_it_was_made() -> None:
    made = marco({})[f"{AGENTS}/marco/workspace/manifest.json"]

    assert isinstance(made, bytes)
    told = {"version": 1, "generated_at": "1970-01-01T00:00:00.007Z", "files": []}
    assert json.loads(made) == told


@given(st.integers(0, 253_402_300_799_999))
def test_a_moment_is_told_to_the_millisecond(at: int) -> None:
    shown = format_timestamp(at)
    assert shown.endswith(f"{at % 1000:03}Z")
    assert len(shown) == len("1970-01-01T00:00:00.000Z")


entries = st.builds(
    Entry, st.sampled_from("abc").map(blob), st.none() | st.sampled_from("abc").map(blob)
)
names = st.sampled_from(["GUARDRAILS.md", "USER.md", "SOUL.md", "rules/a", "manifest.json", "x/y"])


@given(st.dictionaries(names, st.none() | entries))
def test_whoever_reads_the_catalog_gets_what_the_agent_is_served(
    files: dict[str, Entry | None],
) -> None:
    """An own object first, else for a pinned file the bytes of its pin."""
    plan, layers = marco(files), (tree(files), Tree(Scope("ten_1", ScopeKind.DEFAULTS, ""), 0, {}))
    workspace = RenderContext(CLASSES).compose(layers)
    for path in {Path(name) for name in files} - layout.RESERVED_PATHS:
        shown, entry = workspace.files.get(path), files[path.text]
        found = plan.get(AgentFileKey("acme", "marco", path).text)
        if found is None and CLASSES.class_of(path) is FileClass.PINNED and entry and entry.base:
            found = plan[ReviewedFileKey("acme", "sales", path, entry.base.digest).text]
        assert found == (shown.blob if shown else None)
