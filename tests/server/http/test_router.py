"""Routing of raw request paths."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.core.errors import ValidationError
from carrel.server.http.router import Router

TEMPLATES = (
    "/",
    "/v1/agents",
    "/v1/agents/me",
    "/v1/agents/{id}",
    "/v1/agents/{id}/files",
    "/v1/agents/{id}/files/{path...}",
    "/v1/agents/{id}/files/{path...}/history",
    "/v1/agents/me/pins/{path...}/accept",
    "/v1/files/{path...}",
    "/v1/pins/{one}",
    "/v1/pins/{all...}",
    "/v1/pins/me/{one}/x",
    "/v1/runs/{id}",
    "/v1/runs/{id}.txt",
    "/v1/runs/{id}/diff",
    "/{page}",
)


def build_router(*templates: str) -> Router[str]:
    router: Router[str] = Router()
    for template in templates or TEMPLATES:
        router.add("GET", template, template)
    return router


def resolve(path: str, *templates: str) -> tuple[str, dict[str, str]] | None:
    return resolve_with(build_router(*templates), path)


def test_a_literal_beats_a_parameter() -> None:
    assert resolve("/v1/agents/me") == ("/v1/agents/me", {})
    assert resolve("/v1/agents/ada") == ("/v1/agents/{id}", {"id": "ada"})
    assert resolve("/v1/pins/a") == ("/v1/pins/{one}", {"one": "a"})
    assert resolve("/v1/pins/a/b") == ("/v1/pins/{all...}", {"all": "a/b"})


def test_a_literal_without_a_match_falls_back_to_a_parameter() -> None:
    assert resolve("/v1/agents/me/files") == ("/v1/agents/{id}/files", {"id": "me"})
    assert resolve("/v1/agents/me/files/a/history") == (
        "/v1/agents/{id}/files/{path...}/history",
        {"id": "me", "path": "a"},
    )


def test_a_suffix_after_a_parameter_selects_its_own_route() -> None:
    assert resolve("/v1/runs/a.txt") == ("/v1/runs/{id}.txt", {"id": "a"})
    assert resolve("/v1/runs/a.txt.txt") == ("/v1/runs/{id}.txt", {"id": "a.txt"})
    assert resolve("/v1/runs/.txt") == ("/v1/runs/{id}", {"id": ".txt"})
    assert resolve("/v1/runs/a.tx") == ("/v1/runs/{id}", {"id": "a.tx"})
    assert resolve("/v1/runs/a.txt/diff") == ("/v1/runs/{id}/diff", {"id": "a.txt"})


def test_an_encoded_slash_belongs_to_its_segment() -> None:
    assert resolve("/v1/agents/a%2Fb") == ("/v1/agents/{id}", {"id": "a/b"})
    assert resolve("/v1/runs/a%2Fdiff") == ("/v1/runs/{id}", {"id": "a/diff"})


def test_a_rest_parameter_is_the_same_with_raw_and_encoded_slashes() -> None:
    assert resolve("/v1/files/a/b.md") == resolve("/v1/files/a%2Fb.md")
    assert resolve("/v1/files/a%2fb/c.md") == ("/v1/files/{path...}", {"path": "a/b/c.md"})


@pytest.mark.parametrize(
    ("path", "template", "rest"),
    [
        ("a/b/history", "/v1/agents/{id}/files/{path...}/history", "a/b"),
        ("history/history", "/v1/agents/{id}/files/{path...}/history", "history"),
        ("a%2Fhistory", "/v1/agents/{id}/files/{path...}", "a/history"),
        ("a/%68istory", "/v1/agents/{id}/files/{path...}", "a/history"),
        ("history", "/v1/agents/{id}/files/{path...}", "history"),
        ("/history", "/v1/agents/{id}/files/{path...}", "/history"),
        ("history/b", "/v1/agents/{id}/files/{path...}", "history/b"),
    ],
)
def test_a_final_literal_matches_only_raw_and_after_a_nonempty_rest(
    path: str, template: str, rest: str
) -> None:
    assert resolve(f"/v1/agents/7/files/{path}") == (template, {"id": "7", "path": rest})


def test_a_rest_with_a_final_literal_needs_that_literal() -> None:
    assert resolve("/v1/agents/me/pins/a/b/accept", *TEMPLATES) is not None
    assert resolve("/v1/agents/me/pins/a/b") is None
    assert resolve("/v1/agents/me/pins/accept") is None


@pytest.mark.parametrize(
    "path",
    ["/v1/agents/", "/v1/agents/me/", "/v1/files/", "/v1/files", "", "/v1/nothing/at"],
)
def test_a_trailing_slash_is_another_path(path: str) -> None:
    assert resolve(path) is None


@pytest.mark.parametrize("value", ["%", "%2", "%zz", "a%2", "%ff", "%ed%a0%80", "%c3"])
@pytest.mark.parametrize("prefix", ["/v1/agents/", "/v1/files/", "/v1/files/a/"])
def test_a_path_that_is_not_percent_encoded_utf8_is_malformed(prefix: str, value: str) -> None:
    with pytest.raises(ValidationError):
        resolve(prefix + value)


@settings(deadline=None)
@given(st.text(min_size=1))
def test_any_text_round_trips_through_one_encoded_segment(text: str) -> None:
    raw = quote(text.encode("utf-8", "surrogatepass"), safe="")
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(ValidationError):
            resolve(f"/v1/files/{raw}")
        return
    assert resolve(f"/v1/files/{raw}") == ("/v1/files/{path...}", {"path": text})
    assert resolve(f"/v1/agents/7/files/{raw}") == (
        "/v1/agents/{id}/files/{path...}",
        {"id": "7", "path": text},
    )


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text != "/"))
def test_any_text_round_trips_with_raw_slashes(text: str) -> None:
    raw = quote(text, safe="/")
    assert resolve(f"/v1/files/{raw}") == ("/v1/files/{path...}", {"path": text})


def best_template(path: str, templates: tuple[str, ...]) -> str | None:
    """The best matching template, chosen by checking each of them."""
    fits = [(_rank(t), t) for t in templates if _fits(path.split("/")[1:], t.split("/")[1:])]
    return min(fits)[1] if fits else None


def _fits(path: list[str], template: list[str]) -> bool:
    for at, part in enumerate(template):
        if part.endswith("...}"):
            after = template[at + 1 :]
            rest = path[at : len(path) - len(after)]
            return "/".join(rest) != "" and path[len(path) - len(after) :] == after
        if at >= len(path) or (not path[at] if part.startswith("{") else part != path[at]):
            return False
    return len(path) == len(template)


def _rank(template: str) -> list[int]:
    parts = template.split("/")[1:]
    ranks = [(2 if part.endswith("...}") else 1) if part.startswith("{") else 0 for part in parts]
    return [*ranks[:-1], ranks[-1] - 1] if 2 in ranks[:-1] else [*ranks, 3]


SEGMENTS = st.sampled_from(["v1", "agents", "me", "files", "history", "pins", "accept", "", "x"])


@st.composite
def near_a_template(draw: st.DrawFn) -> str:
    """A path that fits one of the templates, or nearly."""
    parts: list[str] = []
    for part in draw(st.sampled_from(TEMPLATES)).split("/")[1:]:
        if part.startswith("{"):
            parts += draw(st.lists(SEGMENTS, min_size=1, max_size=3 if "..." in part else 1))
        else:
            parts.append(part)
    return "/" + "/".join([*parts, *draw(st.lists(SEGMENTS, max_size=1))])


@settings(deadline=None, max_examples=200)
@given(near_a_template())
def test_the_trie_agrees_with_checking_every_template(path: str) -> None:
    router = build_router()
    for _ in range(2):
        match = resolve_with(router, path)
        assert (match and match[0]) == best_template(path, TEMPLATES)


def test_a_long_path_is_matched_in_linear_time() -> None:
    assert resolve("/v1/nothing" + "/a" * 200_000) is None
    match = resolve("/v1/files/" + "a/" * 100_000 + "b")
    assert match is not None
    assert len(match[1]["path"]) == 200_001


def test_a_path_deeper_than_every_template_does_not_match() -> None:
    assert resolve("/a/x/y", "/a/{b}/{c}") == ("/a/{b}/{c}", {"b": "x", "c": "y"})
    assert resolve("/a/x/y/z", "/a/{b}/{c}") is None
    assert resolve("/a/x/y/", "/a/{b}/{c}") is None
    assert resolve("/a/x/y%2Fz", "/a/{b}/{c}") == ("/a/{b}/{c}", {"b": "x", "c": "y/z"})


def test_a_route_added_later_replaces_a_cached_match() -> None:
    router = build_router("/v1/{rest...}")
    assert resolve_with(router, "/v1/agents/me") == ("/v1/{rest...}", {"rest": "agents/me"})
    assert resolve_with(router, "/v1/agents/ada") == ("/v1/{rest...}", {"rest": "agents/ada"})
    assert resolve_with(router, "/v2/x") is None

    for template in ("/v1/agents/{id}", "/v1/agents/me", "/v2/{x}"):
        router.add("GET", template, template)

    assert resolve_with(router, "/v1/agents/me") == ("/v1/agents/me", {})
    assert resolve_with(router, "/v1/agents/ada") == ("/v1/agents/{id}", {"id": "ada"})
    assert resolve_with(router, "/v2/x") == ("/v2/{x}", {"x": "x"})


def test_a_method_added_later_is_allowed_on_a_cached_path() -> None:
    router = build_router("/v1/agents/{id}")
    assert methods(router, "/v1/agents/ada") == ({"GET", "HEAD"}, "GET, HEAD, OPTIONS")

    router.add("PUT", "/v1/agents/{id}", "put")

    assert methods(router, "/v1/agents/ada") == ({"GET", "HEAD", "PUT"}, "GET, HEAD, OPTIONS, PUT")
    assert methods(router, "/v1/agents/bob") == methods(router, "/v1/agents/ada")


def test_paths_that_differ_only_in_encoding_resolve_separately() -> None:
    router = build_router()
    spellings = {
        "/v1/runs/a/diff": ("/v1/runs/{id}/diff", {"id": "a"}),
        "/v1/runs/a%2Fdiff": ("/v1/runs/{id}", {"id": "a/diff"}),
        "/v1/runs/%61/diff": ("/v1/runs/{id}/diff", {"id": "a"}),
        "/v1/runs/A/diff": ("/v1/runs/{id}/diff", {"id": "A"}),
        "/v1/agents/m%65": ("/v1/agents/{id}", {"id": "me"}),
        "/v1/agents/me": ("/v1/agents/me", {}),
    }
    for _ in range(2):
        assert {path: resolve_with(router, path) for path in spellings} == spellings
        with pytest.raises(ValidationError):
            resolve_with(router, "/v1/agents/%ff")


def test_only_short_paths_are_cached_and_the_cache_is_bounded() -> None:
    router = build_router("/v1/agents/{id}")
    for size in (200, 256, 257, 10_000):
        path = "/v1/agents/".ljust(size, "x")
        assert (
            resolve_with(router, path)
            == resolve_with(router, path)
            == ("/v1/agents/{id}", {"id": path[11:]})
        )
    assert {len(path) for path in router._cache} == {200, 256}

    for number in range(10_000):
        assert resolve_with(router, f"/v1/agents/{number}") == (
            "/v1/agents/{id}",
            {"id": str(number)},
        )
        assert resolve_with(router, f"/nowhere/{number}") is None
    assert 0 < len(router._cache) <= 4096
    assert all(path.startswith(b"/v1/agents/") for path in router._cache)


def resolve_with(router: Router[str], path: str) -> tuple[str, dict[str, str]] | None:
    match = router.match(path.encode())
    return None if match is None else (match[0].template, match[0].params(match[1]))


def methods(router: Router[str], path: str) -> tuple[set[str], str]:
    match = router.match(path.encode())
    assert match
    return set(match[0].methods), match[0].allow


def test_conflicting_templates_are_refused() -> None:
    router = build_router("/v1/agents/{id}", "/v1/files/{path...}/history")
    with pytest.raises(ValueError, match="different parameters"):
        router.add("PUT", "/v1/agents/{slug}", "")
    with pytest.raises(ValueError, match="already registered"):
        router.add("GET", "/v1/agents/{id}", "")
    with pytest.raises(ValueError, match="one literal"):
        router.add("GET", "/v1/files/{path...}/history/all", "")
    with pytest.raises(ValueError, match="slash"):
        router.add("GET", "v1", "")
