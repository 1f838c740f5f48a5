"""Redaction in parts gives what redaction of the whole gives."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.redaction.part_redaction import PartRedactor
from carrel.core.redaction.redactor import Redactor

SECRETS = {"one": "s3cret-value-1", "lines": "first line\nsecond line", "tail": "]\nafter-it"}
AWS_KEY = b"AKIA" + b"Z7" * 8
TOKEN = b"ghp_" + b"aB3dE6gH9j" * 4
PIECES = [
    *(value.encode() for value in SECRETS.values()),
    AWS_KEY,
    TOKEN,
    b"task-" + TOKEN,
    b"s3cret",
    b"-value-1",
    b"after-it",
    b"x" * 20,
    b"eyJ",
]


@given(
    st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(b"\n \0")), max_size=40),
    st.integers(1, 60),
)
def test_parts_are_redacted_as_the_whole(pieces: list[tuple[bytes, int]], size: int) -> None:
    redactor = Redactor(SECRETS)
    content = b"".join(piece + bytes([boundary]) for piece, boundary in pieces)
    parts = PartRedactor(redactor, window_bytes=160, overlap_bytes=80)

    cut = (content[start : start + size] for start in range(0, len(content), size))
    redacted = b"".join(parts.redact(cut))

    expected = redactor.redact(content)
    assert (redacted, parts.replaced) == (expected.content, expected.replaced)


def test_a_large_content_is_never_held_whole() -> None:
    def lines() -> Iterator[bytes]:
        for _ in range(40):
            yield b"a line of text\n" * 70_000

    parts = PartRedactor(Redactor(SECRETS))
    tracemalloc.start()
    try:
        size = sum(len(part) for part in parts.redact(lines()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 40 * 70_000 * 15
    assert peak < size / 3
