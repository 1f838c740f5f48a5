"""Properties of a redactor for any vault and any content."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.strategies_text import takes_linear_time

from carrel.core.redaction.redactor import (
    MAX_SECRET_BYTES,
    Redactor,
    SecretPatternMode,
    secret_problem,
)
from carrel.core.redaction.secret_patterns import PATTERN_NAMES, WINDOW_BYTES, find_secrets

AWS = "AKIAIOSFODNN7EXAMPLE"
ids = st.from_regex(r"[a-z][a-z0-9._-]{0,5}", fullmatch=True)


def vaults(alphabet: str, max_secrets: int = 5) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(ids, st.text(alphabet, min_size=8, max_size=12), max_size=max_secrets)


def contents(vault: dict[str, str], alphabet: str) -> st.SearchStrategy[bytes]:
    """Texts of values, parts of values and markers, adjacent to each other."""
    parts = [value[start:end] for value in vault.values() for start, end in CUTS]
    markers = [f"[REDACTED:{name}]" for name in vault]
    piece = st.text(alphabet, max_size=9)
    if parts:
        piece |= st.sampled_from(parts) | st.sampled_from(markers)
    return st.lists(piece, max_size=12).map(lambda pieces: "".join(pieces).encode())


CUTS = ((0, None), (1, None), (0, -1), (4, None), (0, 4))


@pytest.mark.parametrize("alphabet", ["ab", "a]", "[]:REDACT", "a-[REDACTED:b]"])
@given(data=st.data())
def test_no_secret_survives_and_redaction_is_idempotent(data: st.DataObject, alphabet: str) -> None:
    vault = data.draw(vaults(alphabet))
    redactor = Redactor(vault)
    result = redactor.redact(data.draw(contents(vault, alphabet)))
    assert not [name for name, value in vault.items() if value.encode() in result.content]
    assert redactor.redact(result.content).content is result.content
    assert set(result.replaced) <= set(vault)


@pytest.mark.parametrize("mode", SecretPatternMode)
@pytest.mark.parametrize("alphabet", ["ab", "a]", "a-[REDACTED:b]", "AKIS1 skgh-_p"])
@given(data=st.data())
def test_many_contents_are_redacted_like_each_alone(
    data: st.DataObject, alphabet: str, mode: SecretPatternMode
) -> None:
    vault = data.draw(vaults(alphabet))
    redactor = Redactor(vault, mode)
    content = contents(vault, alphabet) | st.sampled_from([AWS.encode(), AWS[:9].encode(), b""])
    many = data.draw(st.lists(content, max_size=8))
    assert redactor.redact_all(many) == [redactor.redact(content) for content in many]


def test_a_value_that_overlaps_the_content_before_is_redacted() -> None:
    results = Redactor({"door": "abababab"}).redact_all([b"ab", b"abababab", b"ab"])
    assert [result.replaced for result in results] == [(), ("door",), ()]


def test_of_many_contents_those_at_window_edges_are_redacted() -> None:
    secret = b"hunter2hunter2"
    for shift in range(-len(secret), len(secret)):
        before = b"x" * (WINDOW_BYTES + shift)
        results = Redactor({"door": secret.decode()}).redact_all([before, secret, b"y"])
        assert [result.replaced for result in results] == [(), ("door",), ()]


@given(vaults("abcdefgh", max_secrets=3), st.binary(max_size=200))
def test_content_without_secrets_is_returned_as_the_same_object(
    vault: dict[str, str], text: bytes
) -> None:
    assume(not any(value.encode() in text for value in vault.values()))
    result = Redactor(vault).redact(text)
    assert (result.content, result.replaced, result.warned) == (text, (), ())
    assert result.content is text


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6))
def test_bytes_around_a_secret_are_unchanged(pieces: list[bytes]) -> None:
    value = "pässwörd-\n-Ω"
    assume(not any(value.encode() in piece for piece in pieces))
    result = Redactor({"door": value}).redact(value.encode().join(pieces))
    assert result.content == b"[REDACTED:door]".join(pieces)
    assert result.replaced == (("door",) if len(pieces) > 1 else ())


@given(st.data())
def test_the_longest_value_wins(data: st.DataObject) -> None:
    lengths = data.draw(st.sets(st.integers(8, 14), min_size=1, max_size=4))
    sized = {str(n): data.draw(st.text("xyz", min_size=n, max_size=n)) for n in lengths}
    text = data.draw(contents(sized, "xyz"))
    assume(b"REDACTED" not in text)
    expected = text
    for length in sorted(lengths, reverse=True):
        expected = expected.replace(sized[str(length)].encode(), b"[REDACTED:%d]" % length)
    assert Redactor(sized).redact(text).content == expected


def test_a_longer_value_wins_over_one_that_starts_before_it() -> None:
    redactor = Redactor({"short": "abcdefgh", "long": "efghijklm"})
    assert redactor.redact(b"abcdefghijklm").content == b"abcd[REDACTED:long]"


def test_of_values_of_one_length_the_leftmost_wins() -> None:
    redactor = Redactor({"a": "efghijkl", "b": "abcdefgh"})
    assert redactor.redact(b"abcdefghijkl").content == b"[REDACTED:b]ijkl"


def test_a_value_contained_in_another_is_redacted_where_it_appears_alone() -> None:
    redactor = Redactor({"whole": "user:hunter2hunter2", "part": "hunter2hunter2"})
    text = b"user:hunter2hunter2 and hunter2hunter2"
    assert redactor.redact(text).content == b"[REDACTED:whole] and [REDACTED:part]"


def test_long_values_with_a_common_prefix_are_distinguished() -> None:
    start = "postgresql://reader:" + "x" * 40
    redactor = Redactor({"one": start + "1", "two": start + "22", "start": start + "2"})
    text = f"{start}1 {start}22 {start}2 {start}".encode()
    expected = f"[REDACTED:one] [REDACTED:two] [REDACTED:start] {start}"
    assert redactor.redact(text).content == expected.encode()


def test_a_prefix_of_a_value_does_not_hide_a_pattern() -> None:
    redactor = Redactor({"long": "x" * 50})
    result = redactor.redact(b"x" * 49 + b" " + AWS.encode())
    assert result.content == b"x" * 49 + b" [REDACTED:aws-access-key]"


@pytest.mark.parametrize("shift", range(-12, 3))
def test_a_value_across_a_window_edge_is_redacted(shift: int) -> None:
    before, after = b"." * (WINDOW_BYTES + shift), b"." * WINDOW_BYTES
    text = before + b"hunter2hunter2" + after
    redactor = Redactor({"door": "hunter2hunter2"})
    assert redactor.redact(text).content == before + b"[REDACTED:door]" + after


def test_of_two_ids_with_one_value_the_first_in_order_is_named() -> None:
    redactor = Redactor({"zeta": "hunter2hunter2", "alpha": "hunter2hunter2"})
    assert redactor.redact(b"hunter2hunter2").content == b"[REDACTED:alpha]"


def test_values_of_fewer_than_eight_characters_are_not_redacted() -> None:
    redactor = Redactor({"short": "1234567", "umlauts": "äöüäöüä", "enough": "12345678"})
    text = "1234567 äöüäöüä".encode()
    assert redactor.redact(text).content is text
    assert redactor.redact(b"12345678").content == b"[REDACTED:enough]"


def test_values_are_redacted_before_patterns_and_both_are_named() -> None:
    redactor = Redactor({"cloud": AWS})
    text = f"{AWS} ghp_{'k3' * 18}".encode()
    result = redactor.redact(text)
    assert result.content == b"[REDACTED:cloud] [REDACTED:github-token]"
    assert result.replaced == ("cloud", "github-token")


def test_a_pattern_exposed_by_a_replacement_is_redacted() -> None:
    redactor = Redactor({"door": "hunter2hunter2"})
    result = redactor.redact(b"hunter2hunter2" + AWS.encode())
    assert result.content == b"[REDACTED:door][REDACTED:aws-access-key]"


def test_patterns_can_be_set_to_warn_or_off() -> None:
    text = f"{AWS} hunter2hunter2".encode()
    vault = {"door": "hunter2hunter2"}
    warned = Redactor(vault, SecretPatternMode.WARN).redact(text)
    assert warned.content == f"{AWS} [REDACTED:door]".encode()
    assert (warned.replaced, warned.warned) == (("door",), ("aws-access-key",))
    off = Redactor(vault, SecretPatternMode.OFF).redact(text)
    assert (off.content, off.replaced, off.warned) == (warned.content, ("door",), ())


def test_find_in_text_names_the_secrets_of_a_path() -> None:
    redactor = Redactor({"door": "hunter2hunter2"})
    assert redactor.find_in_text(f"notes/hunter2hunter2/{AWS}.md") == ("aws-access-key", "door")
    assert redactor.find_in_text("notes/2026-11-15.md") == ()
    assert redactor.find_in_text("notes/\ud800hunter2hunter2") == ("door",)
    assert Redactor({}, SecretPatternMode.WARN).find_in_text(AWS) == ()


def test_a_value_completed_by_a_marker_is_redacted() -> None:
    redactor = Redactor({"door": "hunter2hunter2", "seam": "]-and-so"})
    result = redactor.redact(b"hunter2hunter2-and-so on")
    assert result.content == b"[REDACTED:door[REDACTED:seam] on"
    assert result.replaced == ("door", "seam")


def test_a_marker_that_contains_a_value_is_shortened() -> None:
    named = Redactor({"the-password": "hunter2hunter2", "other": "password"})
    assert named.redact(b"hunter2hunter2").content == b"[REDACTED]"
    nothing = Redactor({"door": "hunter2hunter2", "other": "REDACTED"})
    assert nothing.redact(b"<hunter2hunter2>").content == b"<>"
    shaped = Redactor({AWS: "hunter2hunter2"})
    assert shaped.redact(b"hunter2hunter2").content == b"[REDACTED]"


def test_values_that_chain_with_markers_are_cut_out() -> None:
    redactor = Redactor({"chain": "]aaaaaaa"})
    result = redactor.redact(b"]" + b"aaaaaaa" * 50 + b" end")
    assert b"]aaaaaaa" not in result.content
    assert result.content.endswith(b" end")
    assert result.content.count(b"[REDACTED:chain") == 8


def test_content_that_cannot_be_redacted_is_dropped() -> None:
    values = {"onion": "a[REDACTED:onion]b", "core": "aaaabbbb"}
    text = b"a" * 100 + b"[REDACTED:onion]" + b"b" * 100
    assert Redactor(values).redact(text).content == b"[REDACTED]"
    values["marker"] = "REDACTED"
    assert Redactor(values).redact(b"aaaa" * 50 + b"bbbb" * 50).content == b""


def test_a_redactor_and_its_result_do_not_show_content() -> None:
    redactor = Redactor({"door": "hunter2hunter2"})
    assert "hunter2" not in repr(redactor)
    assert "of no concern" not in repr(redactor.redact(b"of no concern"))


@given(vaults("abcdefgh"), st.data())
def test_markers_name_only_existing_ids(vault: dict[str, str], data: st.DataObject) -> None:
    text = data.draw(contents(vault, "abcdefgh ")) + f" {AWS}".encode()
    result = Redactor(vault).redact(text)
    named = set(re.findall(r"\[REDACTED:([^\]]*)\]", result.content.decode()))
    assert named <= set(vault) | {"aws-access-key"}
    assert "aws-access-key" in result.replaced


@pytest.mark.parametrize(
    ("secret_id", "value"),
    [
        ("", "hunter2hunter2"),
        (".hidden", "hunter2hunter2"),
        ("a b", "hunter2hunter2"),
        ("a]", "hunter2hunter2"),
        ("é", "hunter2hunter2"),
        ("door\n", "hunter2hunter2"),
        ("x" * 129, "hunter2hunter2"),
        ("jwt", "hunter2hunter2"),
        ("aws-access-key", "hunter2hunter2"),
        (AWS, "hunter2hunter2"),
        ("door", "1234567"),
        ("door", "äöüäöüä"),
        ("door", " \t\n" * 4),
        ("door", "\ud800" * 8),
        ("door", "x" * (MAX_SECRET_BYTES + 1)),
        ("door", "ä" * (MAX_SECRET_BYTES // 2 + 1)),
        ("door", "REDACTED"),
        ("door", "EDACTED:"),
        ("door", "REDACTED]"),
        ("door", "CTED:some-id"),
        ("door", "[REDACTED:some-id]"),
        ("door", "private-key"),
        ("back-door", "back-door"),
        ("the-back-door", "back-door]"),
    ],
)
def test_an_invalid_secret_is_refused_without_naming_its_value(secret_id: str, value: str) -> None:
    problem = secret_problem(secret_id, value)
    assert problem
    assert value not in problem


@pytest.mark.parametrize(
    ("secret_id", "value"),
    [
        ("a", "12345678"),
        ("Stripe_live.2026-11", "sk_live_" + "4eC39HqLyjWD" * 2),
        ("x" * 128, "x" * 7 + "y" * (MAX_SECRET_BYTES - 7)),
        ("door", "[door]-redacted-"),
        ("door", "The word REDACTED in a sentence"),
        ("door", "0f" * 32),
        ("cloud", AWS),
    ],
)
def test_a_valid_secret_is_accepted_and_redacted(secret_id: str, value: str) -> None:
    assert secret_problem(secret_id, value) is None
    assert Redactor({secret_id: value}).redact(value.encode()).replaced == (secret_id,)


@given(ids, st.text(min_size=8, max_size=40))
def test_an_accepted_secret_is_replaced_by_its_full_marker(name: str, value: str) -> None:
    assume(secret_problem(name, value) is None)
    marker = f"[REDACTED:{name}]".encode()
    assert Redactor({name: value}).redact(value.encode()).content == marker


def test_no_pattern_marker_matches_a_pattern() -> None:
    assert not [name for name in PATTERN_NAMES if find_secrets(f"[REDACTED:{name}]".encode())]


@pytest.mark.parametrize(
    ("vault", "unit"),
    [
        ({"x": "a" * 8}, "a"),
        ({"x": "a" * MAX_SECRET_BYTES}, "a"),
        ({str(n): "a" * n for n in range(8, 200)}, "a"),
        ({str(n): "a" * n for n in range(8, 200)}, "a" * 199 + "b"),
        ({str(n): "a" * 63 + str(n) for n in range(100)}, "a"),
        ({"x": "]aaaaaaa", "y": "bbbbbbbb"}, "bbbbbbbb" + "aaaaaaa" * 9),
        ({"x": "][REDACT", "y": "zzzzzzzz"}, "z"),
    ],
    ids=lambda _: "",
)
def test_redaction_takes_linear_time_for_every_vault(vault: dict[str, str], unit: str) -> None:
    longest = max(map(len, vault.values()))
    assert takes_linear_time(Redactor(vault).redact, "", unit, max(1 << 18, 16 * longest))


def test_values_that_are_prefixes_of_each_other_take_bounded_memory() -> None:
    redactor = Redactor({str(n): "a" * n for n in range(8, 40)})
    content = b"a" * (1 << 18)
    tracemalloc.start()
    redactor.redact(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(content)


def test_the_repr_of_a_result_hides_its_content() -> None:
    redacted = Redactor({}).redact(b"the content")
    assert "content" not in repr(redacted)
    assert "content" not in str(redacted.__rich_repr__())
