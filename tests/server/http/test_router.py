"""Where a path leads, as it came over the wire."""

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


def routes(*templates: str) -> Router[str]:
    made: Router[str] = Router()
    for template in templates or TEMPLATES:
        made.add("GET", template, template)
    return made


def where(path: str, *templates: str) -> tuple[str, dict[str, str]] | None:
    return shown(routes(*templates), path)


def test_a_literal_beats_a_parameter() -> None:
    assert where("/v1/agents/me") == ("/v1/agents/me", {})
    assert where("/v1/agents/ada") == ("/v1/agents/{id}", {"id": "ada"})
    assert where("/v1/pins/a") == ("/v1/pins/{one}", {"one": "a"})
    assert where("/v1/pins/a/b") == ("/v1/pins/{all...}", {"all": "a/b"})


def test_a_literal_that_leads_nowhere_gives_way() -> None:
    assert where("/v1/agents/me/files") == ("/v1/agents/{id}/files", {"id": "me"})
    assert where("/v1/agents/me/files/a/history") == (
        "/v1/agents/{id}/files/{path...}/history",
        {"id": "me", "path": "a"},
    )


def test_what_ends_in_a_certain_way_may_lead_elsewhere() -> None:
    assert where("/v1/runs/a.txt") == ("/v1/runs/{id}.txt", {"id": "a"})
    assert where("/v1/runs/a.txt.txt") == ("/v1/runs/{id}.txt", {"id": "a.txt"})
    assert where("/v1/runs/.txt") == ("/v1/runs/{id}", {"id": ".txt"})
    assert where("/v1/runs/a.tx") == ("/v1/runs/{id}", {"id": "a.tx"})
    assert where("/v1/runs/a.txt/diff") == ("/v1/runs/{id}/diff", {"id": "a.txt"})


def test_an_encoded_slash_belongs_to_its_segment() -> None:
    assert where("/v1/agents/a%2Fb") == ("/v1/agents/{id}", {"id": "a/b"})
    assert where("/v1/runs/a%2Fdiff") == ("/v1/runs/{id}", {"id": "a/diff"})


def test_the_rest_is_the_same_with_raw_and_with_encoded_slashes() -> None:
    assert where("/v1/files/a/b.md") == where("/v1/files/a%2Fb.md")
    assert where("/v1/files/a%2fb/c.md") == ("/v1/files/{path...}", {"path": "a/b/c.md"})


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
def test_a_last_literal_counts_only_raw_and_after_something(
    path: str, template: str, rest: str
) -> None:
    assert where(f"/v1/agents/7/files/{path}") == (template, {"id": "7", "path": rest})


def test_a_rest_that_must_end_in_a_literal_is_nothing_without_it() -> None:
    assert where("/v1/agents/me/pins/a/b/accept", *TEMPLATES) is not None
    assert where("/v1/agents/me/pins/a/b") is None
    assert where("/v1/agents/me/pins/accept") is None


@pytest.mark.parametrize(
    "path",
    ["/v1/agents/", "/v1/agents/me/", "/v1/files/", "/v1/files", "", "/v1/nothing/at"],
)
def test_a_trailing_slash_is_another_path(path: str) -> None:
    assert where(path) is None


@pytest.mark.parametrize("value", ["%", "%2", "%zz", "a%2", "%ff", "%ed%a0%80", "%c3"])
@pytest.mark.parametrize("place", ["/v1/agents/", "/v1/files/", "/v1/files/a/"])
def test_what_is_not_percent_encoded_utf8_is_malformed(place: str, value: str) -> None:
    with pytest.raises(ValidationError):
        where(place + value)


@settings(deadline=None)
@given(st.text(min_size=1))
def test_any_text_comes_back_from_one_encoded_segment(text: str) -> None:
    raw = quote(text.encode("utf-8", "surrogatepass"), safe="")
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(ValidationError):
            where(f"/v1/files/{raw}")
        return
    assert where(f"/v1/files/{raw}") == ("/v1/files/{path...}", {"path": text})
    assert where(f"/v1/agents/7/files/{raw}") == (
        "/v1/agents/{id}/files/{path...}",
        {"id": "7", "path": text},
    )


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text != "/"))
def test_any_text_comes_back_with_its_slashes_raw(text: str) -> None:
    raw = quote(text, safe="/")
    assert where(f"/v1/files/{raw}") == ("/v1/files/{path...}", {"path": text})


def naive(path: str, templates: tuple[str, ...]) -> str | None:
    """The best of all templates that fit, found by looking at each of them."""
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


@settings(deadline=None, max_examples=500)
@given(near_a_template())
def test_the_trie_finds_what_looking_at_every_template_finds(path: str) -> None:
    made = routes()
    for _ in range(2):
        found = shown(made, path)
        assert (found and found[0]) == naive(path, TEMPLATES)


def test_a_long_path_is_looked_at_once() -> None:
    assert where("/v1/nothing" + "/a" * 200_000) is None
    found = where("/v1/files/" + "a/" * 100_000 + "b")
    assert found is not None
    assert len(found[1]["path"]) == 200_001


def test_a_path_past_the_deepest_template_is_no_part_of_it() -> None:
    assert where("/a/x/y", "/a/{b}/{c}") == ("/a/{b}/{c}", {"b": "x", "c": "y"})
    assert where("/a/x/y/z", "/a/{b}/{c}") is None
    assert where("/a/x/y/", "/a/{b}/{c}") is None
    assert where("/a/x/y%2Fz", "/a/{b}/{c}") == ("/a/{b}/{c}", {"b": "x", "c": "y/z"})


def test_what_is_added_later_is_found_where_something_else_was_found_before() -> None:
    made = routes("/v1/{rest...}")
    assert shown(made, "/v1/agents/me") == ("/v1/{rest...}", {"rest": "agents/me"})
    assert shown(made, "/v1/agents/ada") == ("/v1/{rest...}", {"rest": "agents/ada"})
    assert shown(made, "/v2/x") is None

    for template in ("/v1/agents/{id}", "/v1/agents/me", "/v2/{x}"):
        made.add("GET", template, template)

    assert shown(made, "/v1/agents/me") == ("/v1/agents/me", {})
    assert shown(made, "/v1/agents/ada") == ("/v1/agents/{id}", {"id": "ada"})
    assert shown(made, "/v2/x") == ("/v2/{x}", {"x": "x"})


def test_a_method_added_later_is_heard_where_the_path_is_known() -> None:
    made = routes("/v1/agents/{id}")
    assert methods(made, "/v1/agents/ada") == ({"GET", "HEAD"}, "GET, HEAD, OPTIONS")

    made.add("PUT", "/v1/agents/{id}", "put")

    assert methods(made, "/v1/agents/ada") == ({"GET", "HEAD", "PUT"}, "GET, HEAD, OPTIONS, PUT")
    assert methods(made, "/v1/agents/bob") == methods(made, "/v1/agents/ada")


def test_paths_that_differ_only_in_their_encoding_are_told_apart_each_time() -> None:
    made = routes()
    spellings = {
        "/v1/runs/a/diff": ("/v1/runs/{id}/diff", {"id": "a"}),
        "/v1/runs/a%2Fdiff": ("/v1/runs/{id}", {"id": "a/diff"}),
        "/v1/runs/%61/diff": ("/v1/runs/{id}/diff", {"id": "a"}),
        "/v1/runs/A/diff": ("/v1/runs/{id}/diff", {"id": "A"}),
        "/v1/agents/m%65": ("/v1/agents/{id}", {"id": "me"}),
        "/v1/agents/me": ("/v1/agents/me", {}),
    }
    for _ in range(2):
        assert {path: shown(made, path) for path in spellings} == spellings
        with pytest.raises(ValidationError):
            shown(made, "/v1/agents/%ff")


def test_only_short_paths_are_kept_and_only_so_many() -> None:
    made = routes("/v1/agents/{id}")
    for size in (200, 256, 257, 10_000):
        path = "/v1/agents/".ljust(size, "x")
        assert shown(made, path) == shown(made, path) == ("/v1/agents/{id}", {"id": path[11:]})
    assert {len(path) for path in made._cache} == {200, 256}

    for number in range(10_000):
        assert shown(made, f"/v1/agents/{number}") == ("/v1/agents/{id}", {"id": str(number)})
        assert shown(made, f"/nowhere/{number}") is None
    assert 0 < len(made._cache) <= 4096
    assert all(path.startswith(b"/v1/agents/") for path in made._cache)


def shown(made: Router[str], path: str) -> tuple[str, dict[str, str]] | None:
    found = made.match(path.encode())
    return None if found is None else (found[0].template, found[0].params(found[1]))


def methods(made: Router[str], path: str) -> tuple[set[str], str]:
    found = made.match(path.encode())
    assert found
    return set(found[0].methods), found[0].allow


def test_one_place_has_one_spelling() -> None:
    made = routes("/v1/agents/{id}", "/v1/files/{path...}/history")
    with pytest.raises(ValueError, match="different parameters"):
        made.add("PUT", "/v1/agents/{slug}", "")
    with pytest.raises(ValueError, match="already registered"):
        made.add("GET", "/v1/agents/{id}", "")
    with pytest.raises(ValueError, match="one literal"):
        made.add("GET", "/v1/files/{path...}/history/all", "")
    with pytest.raises(ValueError, match="slash"):
        made.add("GET", "v1", "")
