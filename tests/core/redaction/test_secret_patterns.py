"""Secret patterns: texts that match and texts that only resemble them."""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import ssl
import string
import typing
import uuid

import pytest
from ahocorasick_rs import BytesAhoCorasick
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies_text import LETTERS, random_text, redacted, takes_linear_time

from carrel.core.redaction.secret_patterns import WINDOW_BYTES, find_secrets, scan

DIGEST = hashlib.sha256(b"carrel").hexdigest()
UUID = "550e8400-e29b-41d4-a716-446655440000"
JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0"
    ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)


TOKENS = [
    ("aws-access-key", "AKIAIOSFODNN7EXAMPLE"),
    ("aws-access-key", "ASIAY34FZKBOKMUTVV7A"),
    *(("github-token", f"gh{kind}_{random_text(36)}") for kind in "pousr"),
    ("github-token", "ghp_" + "a" * 36),
    ("github-token", f"ghr_{random_text(76)}"),
    ("github-token", f"github_pat_{random_text(22)}_{random_text(59)}"),
    ("slack-token", f"xoxb-123456789012-1234567890123-{random_text(24)}"),
    ("slack-token", f"xoxp-123456789012-123456789012-123456789012-{DIGEST[:32]}"),
    ("slack-token", f"xoxa-2-{random_text(40)}"),
    ("slack-token", f"xoxe-1-{random_text(146)}"),
    ("slack-token", f"xapp-1-A0123456789-1234567890123-{DIGEST}"),
    ("openai-key", f"sk-{random_text(48)}"),
    ("openai-key", f"sk-{string.ascii_letters}"),
    ("openai-key", f"sk-{random_text(20)}T3BlbkFJ{random_text(20)}"),
    ("openai-key", "sk-proj-" + "Ab-_" * 15 + "T3BlbkFJ" + "cD_-" * 15 + "E"),
    ("openai-key", f"sk-svcacct-{random_text(60)}"),
    ("openai-key", f"sk-admin-{random_text(60)}"),
    ("anthropic-key", f"sk-ant-api03-{random_text(93, LETTERS + '-_')}AA"),
    ("anthropic-key", f"sk-ant-admin01-{random_text(93)}"),
    ("anthropic-key", "sk-ant-api03-" + "Ab-c1_" * 15 + "AA"),
    ("anthropic-key", f"sk-ant-{random_text(40)}"),
    ("jwt", JWT),
]
CONTEXTS = ["{}", "key={};", '{{"key": "{}"}}', "`{}`", "**{}**", "_{}_", "({}).", "a\\n{}\\nb"]
CONTEXTS += ["https://host/?q=1&key={}&more", "%3D{}", "é{}é", "x-{} y", "[{}][{}]", "{}\r\n{}"]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(("name", "token"), TOKENS)
def test_a_token_is_detected_in_every_context(name: str, token: str, context: str) -> None:
    expected = f"<{name}>"
    assert redacted(context.format(token, token)) == context.format(expected, expected)


@pytest.mark.parametrize("shift", range(-8, 3))
def test_a_token_across_a_window_edge_is_detected(shift: int) -> None:
    before, after = " " * (WINDOW_BYTES + shift), " " * WINDOW_BYTES
    for name, token in TOKENS:
        assert redacted(before + token + after) == f"{before}<{name}>{after}"


@pytest.mark.parametrize(
    "text",
    [
        "task-" + random_text(48),
        "risk-" + random_text(48),
        "a desk-" + random_text(30),
        "x" + "AKIAIOSFODNN7EXAMPLE",
        "AKIAIOSFODNN7EXAMPLES",
        "AKIAIOSFODNN7EXAMPL",
        "akiaiosfodnn7example",
        "xghp_" + random_text(36),
        "ghp_" + random_text(35),
        "ghp_" + DIGEST[:40],
        "ghx_" + random_text(36),
        "github_pat_your_token_goes_in_this_place",
        "github_pat_" + DIGEST,
        "xoxb-your-own-token-goes-here",
        "xoxo-20261115-party-for-everybody",
        "xoxb-" + DIGEST[:32],
        "xoxb-" + UUID,
        f"xoxb-{UUID}-AKIA{UUID}",
        "xoxz-123456789012-1234567890123-" + random_text(24),
        "sk-",
        "sk-learn",
        "sk-estimator-doc-link-that-goes-on-for-a-long-time-1",
        "sk-FadingCircleAnimationWithDelay",
        "sk-antidisestablishmentarianism",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-ssh-ed25519-cert-v01@openssh.com",
        "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        "sk-" + DIGEST,
        "sk-" + DIGEST[:40].upper(),
        "sk-deadbeefdeadbeefdeadbeef",
        "sk-12345678901234567890",
        "sk-" + UUID,
        "sk-lf-" + UUID,
        "sk-proj-run-" + DIGEST,
        "sk-sha256" + DIGEST,
        "sk-ant-colony-optimisation-in-24-lines",
        "sk-ant-api03-your-own-key-goes-here-please",
        "sk-ant-api03-" + DIGEST,
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + DIGEST,
        "eyJhbGciOiJIUzI1NiJ9.c3ViamVjdCBvZiB0aGUga2V5.c2lnbmF0dXJlIG9mIGl0",
        "x" + JWT,
        "-----BEGIN CERTIFICATE-----\nMIIB" + random_text(60) + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB" + random_text(60) + "\n-----END PUBLIC KEY-----",
        "between `-----BEGIN PRIVATE KEY-----` and `-----END PRIVATE KEY-----`",
        "-----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nyour key goes here\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n[REDACTED:door]\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nThanks\nand so on",
        "they BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n" + DIGEST + "\n" + DIGEST,
        'START = b"-----BEGIN PRIVATE KEY-----"\nEND = b"-----END PRIVATE KEY-----"',
    ],
)
def test_a_text_that_only_resembles_a_secret_is_unchanged(text: str) -> None:
    assert redacted(text) == text


digests = st.builds(
    lambda algorithm, text, upper: (
        algorithm(text).hexdigest().upper() if upper else algorithm(text).hexdigest()
    ),
    st.sampled_from([hashlib.md5, hashlib.sha1, hashlib.sha224, hashlib.sha256, hashlib.sha512]),
    st.binary(max_size=8),
    st.booleans(),
)
digests_and_uuids = (
    digests | st.uuids().map(str) | st.builds("{:032x}".format, st.integers(0, 2**128 - 1))
)
PREFIXES = ["", "sk-", "sk-proj-", "sk-ant-", "sk-ant-api03-", "ghp_", "github_pat_", "xoxb-"]
PREFIXES += ["xapp-1-", "AKIA", "task-", "sha256:", "commit ", "\\n", "%3D"]
PREFIXES += ["-----BEGIN PRIVATE KEY-----\n"]
prefixes = st.sampled_from(PREFIXES)


@given(
    st.lists(st.tuples(prefixes, digests_and_uuids, st.sampled_from("-_ ./:\n\"'=+,")), max_size=6)
)
def test_digests_and_uuids_are_never_redacted(parts: list[tuple[str, str, str]]) -> None:
    text = "".join(prefix + value + separator for prefix, value, separator in parts)
    assert redacted(text) == text


@given(st.lists(digests_and_uuids, min_size=1, max_size=3))
def test_a_digest_joined_to_a_key_is_not_redacted(values: list[str]) -> None:
    rest = "-" + "-".join(values)
    assert redacted(f"sk-proj-{random_text(48)}{rest}") == f"<openai-key>{rest}"
    assert redacted(f"sk-ant-api03-{random_text(93)}{rest}") == f"<anthropic-key>{rest}"
    assert redacted(f"xoxb-1234567890-{random_text(24)}{rest}") == f"<slack-token>{rest}"


def test_a_digest_belongs_to_a_slack_token_of_numbers_and_a_uuid_does_not() -> None:
    assert redacted(f"xoxs-1234567890-{DIGEST}-x") == "<slack-token>-x"
    assert redacted(f"xoxb-1234567890-{UUID}") == f"<slack-token>-{UUID}"


def test_a_token_inside_a_private_key_is_redacted_with_it() -> None:
    inside = f"{random_text(20)}/AKIAIOSFODNN7EXAMPLE/{random_text(20)}"
    block = f"-----BEGIN PRIVATE KEY-----\n{inside}\n-----END PRIVATE KEY-----"
    assert redacted(f"a {block} b") == "a <private-key> b"


def test_a_match_beyond_a_window_edge_is_returned_once() -> None:
    automaton = BytesAhoCorasick([b"ab", b"abcdefgh"])
    matches = list(scan(automaton, b"." * WINDOW_BYTES + b"ab", max_length=8))
    assert matches == [(0, WINDOW_BYTES, WINDOW_BYTES + 2)]


@given(st.binary())
def test_any_bytes_can_be_searched(content: bytes) -> None:
    assert find_secrets(content) == []


@pytest.mark.parametrize("module", [argparse, inspect, json, ssl, typing, uuid])
def test_ordinary_code_and_prose_match_no_pattern(module: object) -> None:
    assert find_secrets(inspect.getsource(module).encode()) == []  # type: ignore[arg-type] # modules


HOSTILE = [
    *("-----BEGIN ", "BEGIN ", "eyJ", "eyJ-", "eyJ.", "eyJaaaaaaaaaa.", "sk-", "sk-ant-"),
    *("sk-ant-api03-", f"sk-{DIGEST}-", "ghp_", "github_pat_", "xox", "xoxb-", "xoxb-1-", "AKIA"),
    *("xapp-1-A", "xapp-1-AAAAAAAAAA-1111111-", f"{JWT}.", "-sk-a"),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_content_is_searched_in_linear_time(unit: str) -> None:
    assert takes_linear_time(find_secrets, "", unit)


@pytest.mark.parametrize("start", ["sk-", "sk-ant-", "ghp_", "github_pat_", "xoxb-", "eyJ"])
@pytest.mark.parametrize("unit", ["a", "a-", "aB", "1_", f"{DIGEST}-", "."])
def test_hostile_suffixes_are_searched_in_linear_time(start: str, unit: str) -> None:
    assert takes_linear_time(find_secrets, start, unit)
