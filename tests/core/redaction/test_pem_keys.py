"""Redaction of private keys in PEM form, complete or truncated."""

from __future__ import annotations

import json
import tracemalloc
from textwrap import indent

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from tests.support.strategies_text import random_text, redacted, takes_linear_time

from carrel.core.redaction.secret_patterns import find_secrets

OPENING, CLOSING = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


def real_keys() -> list[str]:
    ed25519_key = ed25519.Ed25519PrivateKey.generate()
    ec_key = ec.generate_private_key(ec.SECP256R1())
    plain, encrypted = NoEncryption(), BestAvailableEncryption(b"swordfish")
    pkcs8, openssh = PrivateFormat.PKCS8, PrivateFormat.OpenSSH
    openssl = PrivateFormat.TraditionalOpenSSL
    rsa_key = rsa.generate_private_key(65537, 2048)
    encoded = [
        *(ed25519_key.private_bytes(Encoding.PEM, layout, plain) for layout in (pkcs8, openssh)),
        *(ec_key.private_bytes(Encoding.PEM, layout, plain) for layout in (openssl, openssh)),
        *(
            rsa_key.private_bytes(Encoding.PEM, openssl, encryption)
            for encryption in (plain, encrypted)
        ),
        *(
            rsa_key.private_bytes(Encoding.PEM, pkcs8, encryption)
            for encryption in (plain, encrypted)
        ),
    ]
    return [pem.decode().rstrip("\n") for pem in encoded]


KEYS = real_keys()
PGP = "\n".join(
    [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        "Version: GnuPG v2",
        f"Comment: of no concern {'and long ' * 40}",
        "",
        *(random_text(64), random_text(63) + "=", "=a1B2"),
        "-----END PGP PRIVATE KEY BLOCK-----",
    ]
)


@pytest.mark.parametrize("key", [*KEYS, PGP], ids=lambda key: str(key).split("-----")[1])
def test_a_key_is_redacted_in_every_format(key: str) -> None:
    assert redacted(f"before\n{key}\nafter") == "before\n<private-key>\nafter"
    crlf = key.replace("\n", "\r\n")
    assert redacted(f"before\r\n{crlf}\r\nafter") == "before\r\n<private-key>\r\nafter"
    assert redacted(json.dumps({"key": f"{key}\n"})) == json.dumps({"key": "<private-key>\n"})
    twice = json.dumps(json.dumps({"key": f"{crlf}\r\n"}))
    assert redacted(twice) == json.dumps(json.dumps({"key": "<private-key>\r\n"}))
    assert redacted("key: |\n" + indent(key, "    ")) == "key: |\n    <private-key>"
    assert redacted(indent(key, "> ")) == "> <private-key>"
    assert redacted(indent(key, "# ")) == "# <private-key>"
    quoted = " +\n".join(json.dumps(f"{line}\n") for line in key.split("\n"))
    assert redacted(quoted) == '"<private-key>\\n"'
    assert redacted(f"{key}\n{key}") == "<private-key>\n<private-key>"


@pytest.mark.parametrize("between", ["", " ", "  "])
def test_a_key_without_line_ends_is_redacted(between: str) -> None:
    lines = [OPENING, random_text(64), random_text(64)[::-1], random_text(20) + "=", CLOSING]
    assert redacted(f"KEY={between.join(lines)};") == "KEY=<private-key>;"


def test_a_short_key_between_its_lines_alone_is_redacted() -> None:
    assert redacted(f"{OPENING}\nMIIB\n{CLOSING}") == "<private-key>"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", "\\r\\n", "\\\\n"])
def test_an_unterminated_key_is_redacted_up_to_its_last_line(end: str) -> None:
    lines = end.join([OPENING, random_text(64), random_text(64)[::-1], random_text(15)])
    assert redacted(lines) == "<private-key>"
    assert redacted(f"{lines}{end}and then prose") == f"<private-key>{end}and then prose"
    assert redacted(f"{lines}{end}{end}Thanks{end}") == f"<private-key>{end}{end}Thanks{end}"
    assert redacted(f"{lines[:-10]}…") == f"<private-key>{end}{random_text(15)[:5]}…"
    assert redacted(f'{{"key": "{lines}"}}') == '{"key": "<private-key>"}'


def test_a_key_cut_in_its_first_line_is_redacted() -> None:
    assert redacted(f"{OPENING}\n{random_text(30)}\n") == "<private-key>\n"
    assert redacted(f"{OPENING}\n{random_text(50)}... and so on") == "<private-key>... and so on"
    assert redacted(f"{OPENING}{random_text(50)}") == "<private-key>"


def test_a_partly_redacted_key_is_redacted_completely() -> None:
    middle = f"{random_text(40)}[REDACTED:door]{random_text(9)}\n[REDACTED]\n{random_text(30)}"
    partly = f"{OPENING}\n{middle}\n"
    assert redacted(f"{partly}{CLOSING}") == "<private-key>"
    assert (
        redacted(f"{OPENING}\n{random_text(40)}[REDACTED:door]{random_text(9)}\n")
        == "<private-key>\n"
    )


def test_a_key_after_an_unterminated_key_is_redacted() -> None:
    text = f"{OPENING}\n{random_text(64)}\n{OPENING}\n{random_text(64)}\n{CLOSING}\n"
    assert redacted(text) == "<private-key>\n<private-key>\n"
    text = f"{OPENING}\nNote: {OPENING}\n{random_text(64)}\n{CLOSING}\n"
    assert redacted(text) == "<private-key>\n"


HOSTILE = [
    OPENING,
    f"{OPENING}\n",
    f"{OPENING}\nA: ",
    f"{OPENING}\nA: b\n",
    f"{OPENING}\n{'A' * 9}\n",
]
BODIES = [
    "AAAA\n",
    "A",
    "/a",
    "\n",
    " ",
    "\\",
    "\\n",
    "\\r",
    "[REDACTED:a]",
    "[REDACTED:-",
    "a: b\n",
]
BODIES += ["[REDACTED:a]\n", "/" + "0f" * 32, '"', "=", "AAAA "]


@pytest.mark.parametrize(
    ("start", "unit"),
    [*(("", unit) for unit in HOSTILE), *((f"{OPENING}\n", unit) for unit in BODIES)],
)
def test_hostile_blocks_are_searched_in_linear_time(start: str, unit: str) -> None:
    assert takes_linear_time(find_secrets, start, unit)


@pytest.mark.parametrize("unit", BODIES)
def test_a_long_block_is_searched_in_bounded_memory(unit: str) -> None:
    content = (f"{OPENING}\n" + unit * ((1 << 20) // len(unit))).encode()
    tracemalloc.start()
    find_secrets(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * len(content)
