"""Catalog layout: keys round-trip, and each plan holds the right objects."""

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
from carrel.core.overlay.agent_resolution import AgentFileResolver
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


def plan_marco(files: Mapping[str, Entry | None], template: str = "sales") -> layout.CatalogPlan:
    return layout.plan_agent("acme", CLASSES, CatalogAgent("marco", tree(files), 7, template))


def own_paths(plan: layout.CatalogPlan) -> set[str]:
    parsed = [parse_key(key) for key in plan]
    own = {str(key.path) for key in parsed if isinstance(key, AgentFileKey)}
    return own - {"manifest.json"}


@given(keys)
def test_a_key_round_trips_through_its_text(key: CatalogKey) -> None:
    assert parse_key(key.text) == key
    assert key.text.startswith(layout.tenant_prefix(key.tenant))


@given(st.lists(keys, max_size=20))
def test_different_keys_have_different_texts(sample: list[CatalogKey]) -> None:
    assert len({key.text for key in sample}) == len(set(sample))


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
def test_keys_follow_the_layout(key: CatalogKey, text: str) -> None:
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
def test_a_text_outside_the_layout_parses_to_none(text: str) -> None:
    assert parse_key(text) is None


@pytest.mark.parametrize("slug", ["defaults", "_catalog"])
def test_a_reserved_layout_name_is_refused_as_a_slug(slug: str) -> None:
    with pytest.raises(ValidationError):
        parse_unreserved_slug(slug)


def test_overrides_and_managed_files_are_in_the_agents_workspace_and_pins_are_not() -> None:
    base, own = blob("one"), blob("two")
    plan = plan_marco(
        {
            "GUARDRAILS.md": Entry(base, base),
            "PLATFORM.md": Entry(own, base),
            "CAPABILITIES.md": Entry(own),
            "USER.md": Entry(base, base),
            "SOUL.md": Entry(own, base),
            "loosened.md": Entry(base, base),
            "empty.md": Entry(blob(""), base),
            "gone.md": None,
            "rules/a.md": Entry(base, base),
        }
    )

    assert own_paths(plan) == {
        *("PLATFORM.md", "CAPABILITIES.md", "USER.md", "SOUL.md", "empty.md")
    }
    assert plan[f"{AGENTS}/marco/workspace/PLATFORM.md"] == own
    reviewed = {
        str(k.path): plan[k.text] for k in map(parse_key, plan) if isinstance(k, ReviewedFileKey)
    }
    assert reviewed == {"GUARDRAILS.md": base, "PLATFORM.md": base, "rules/a.md": base}


def test_the_creation_version_is_the_reviewed_file_until_another_is_accepted() -> None:
    first = tree({name: Entry(blob("one"), blob("one")) for name in ("GUARDRAILS.md", "SOUL.md")})
    accepted = {"GUARDRAILS.md": Entry(blob("two"), blob("two"))}
    overridden = {"GUARDRAILS.md": Entry(blob("mine"), blob("two"))}

    def reviewed(files: Mapping[str, Entry | None]) -> set[str]:
        own = CatalogAgent("marco", tree(files), 7, "sales", first)
        parsed = map(parse_key, layout.plan_agent("acme", CLASSES, own))
        return {f"{k.path} {k.digest}" for k in parsed if isinstance(k, ReviewedFileKey)}

    assert reviewed({}) == {f"GUARDRAILS.md {digest(b'one')}"}
    assert reviewed(accepted) == reviewed(overridden) == {f"GUARDRAILS.md {digest(b'two')}"}
    assert reviewed({"GUARDRAILS.md": None}) == reviewed({})


def test_pins_are_under_the_followed_template_or_under_the_defaults() -> None:
    pin = {"GUARDRAILS.md": Entry(blob("one"), blob("one"))}
    name = f"workspace-versions/GUARDRAILS.md@{digest(b'one')}"

    assert f"{AGENTS}/_catalog/sales/{name}" in plan_marco(pin)
    assert f"{AGENTS}/_catalog/defaults/{name}" in plan_marco(pin, DEFAULTS_SLUG)


def test_a_template_has_its_own_files_and_its_pinned_files_by_digest() -> None:
    files = {"GUARDRAILS.md": Entry(blob("one")), "SOUL.md": Entry(blob("two")), "x": None}

    plan = layout.plan_layer("acme", CLASSES, CatalogLayer("sales", tree(files)))

    assert plan == {
        f"{AGENTS}/_catalog/sales/workspace/GUARDRAILS.md": blob("one"),
        f"{AGENTS}/_catalog/sales/workspace/SOUL.md": blob("two"),
        f"{AGENTS}/_catalog/sales/workspace-versions/GUARDRAILS.md@{digest(b'one')}": blob("one"),
    }


def test_the_defaults_plan_has_the_seeded_version_only_if_it_is_set() -> None:
    key = f"{AGENTS}/_catalog/defaults/workspace/_defaults_version"
    layer = CatalogLayer(
        DEFAULTS_SLUG, tree({"_defaults_version": Entry(blob("99")), "a": Entry(blob("a"))})
    )

    assert layout.plan_layer("acme", CLASSES, layer, 12)[key] == b"12"
    assert key not in layout.plan_layer("acme", CLASSES, layer)
    assert layout.omitted_paths(layer.tree) == (Path("_defaults_version"),)


def test_a_file_with_a_reserved_name_is_omitted_and_reported() -> None:
    files = {"manifest.json": Entry(blob("mine")), "docs/manifest.json": Entry(blob("other"))}

    plan = plan_marco(files)

    manifest = plan[f"{AGENTS}/marco/workspace/manifest.json"]
    assert isinstance(manifest, bytes)
    assert [file["path"] for file in json.loads(manifest)["files"]] == ["docs/manifest.json"]
    assert layout.omitted_paths(tree(files)) == (Path("manifest.json"),)
    layer = layout.plan_layer("acme", CLASSES, CatalogLayer("sales", tree(files)))
    assert set(layer) == {f"{AGENTS}/_catalog/sales/workspace/docs/manifest.json"}


def test_a_manifest_lists_the_exported_files_and_the_newest_change() -> None:
    files = {"b.md": Entry(blob("one")), "GUARDRAILS.md": Entry(blob("x"), blob("x"))}
    files |= {"a.md": Entry(blob("three")), "memory/é.md": Entry(blob(""))}

    manifest = plan_marco(files)[f"{AGENTS}/marco/workspace/manifest.json"]

    assert isinstance(manifest, bytes)
    assert json.loads(manifest) == {
        "version": 1,
        "generated_at": "1970-01-01T00:00:03.000Z",
        "files": [
            _manifest_entry("a.md", b"three", "1970-01-01T00:00:02.000Z"),
            _manifest_entry("b.md", b"one", "1970-01-01T00:00:00.000Z"),
            _manifest_entry("memory/é.md", b"", "1970-01-01T00:00:03.000Z"),
        ],
    }


def _manifest_entry(path: str, content: bytes, modified_at: str) -> dict[str, object]:
    return {
        "path": path,
        "etag": digest(content),
        "size": len(content),
        "last_modified": modified_at,
    }


def test_a_manifest_of_an_agent_without_files_has_its_creation_time() -> None:
    manifest = plan_marco({})[f"{AGENTS}/marco/workspace/manifest.json"]

    assert isinstance(manifest, bytes)
    expected = {"version": 1, "generated_at": "1970-01-01T00:00:00.007Z", "files": []}
    assert json.loads(manifest) == expected


@given(st.integers(0, 253_402_300_799_999))
def test_a_timestamp_has_milliseconds(at: int) -> None:
    timestamp = format_timestamp(at)
    assert timestamp.endswith(f"{at % 1000:03}Z")
    assert len(timestamp) == len("1970-01-01T00:00:00.000Z")


entries = st.builds(
    Entry, st.sampled_from("abc").map(blob), st.none() | st.sampled_from("abc").map(blob)
)
names = st.sampled_from(["GUARDRAILS.md", "USER.md", "SOUL.md", "rules/a", "manifest.json", "x/y"])


@given(st.dictionaries(names, st.none() | entries))
def test_reading_the_catalog_gives_the_content_that_the_agent_is_served(
    files: dict[str, Entry | None],
) -> None:
    """A reader takes the agent's own object, else the content of the pinned version."""
    plan, layers = (
        plan_marco(files),
        (tree(files), Tree(Scope("ten_1", ScopeKind.DEFAULTS, ""), 0, {})),
    )
    workspace = AgentFileResolver(CLASSES).compose(layers)
    for path in {Path(name) for name in files} - layout.RESERVED_PATHS:
        served, entry = workspace.files.get(path), files[path.text]
        exported = plan.get(AgentFileKey("acme", "marco", path).text)
        if exported is None and CLASSES.class_of(path) is FileClass.PINNED and entry and entry.base:
            exported = plan[ReviewedFileKey("acme", "sales", path, entry.base.digest).text]
        assert exported == (served.blob if served else None)
