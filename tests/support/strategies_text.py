"""Texts to search for secrets: random, already redacted, or slow to search."""

from __future__ import annotations

import gc
import random
import string
from collections.abc import Callable
from time import thread_time

from carrel.core.redaction.secret_patterns import find_secrets

LETTERS = string.ascii_letters + string.digits


def random_text(length: int, alphabet: str = LETTERS) -> str:
    """Random letters, equal in every run."""
    return "".join(random.Random(length).choices(alphabet, k=length))


def redacted(text: str) -> str:
    """The text with `<name>` in place of every match."""
    content = text.encode()
    for start, end, name in reversed(find_secrets(content)):
        content = content[:start] + b"<%b>" % name.encode() + content[end:]
    return content.decode()


def takes_linear_time(
    search: Callable[[bytes], object], start: str, unit: str, max_bytes: int = 1 << 18
) -> bool:
    """Whether 256 KiB take less than 64 times as long as 16 KiB: 16 if linear, 256 if quadratic.

    This thread's CPU time is compared, without garbage collections, which take as long as the
    process is large. Caches that are shared with other processes change it too, so both sizes are
    measured one after the other, up to five times. A search that would take under 2 ms for 64 KiB
    even if quadratic counts as linear.
    """

    def seconds(size: int) -> float:
        content = (start + unit * (size // len(unit))).encode()
        started = thread_time()
        search(content)
        return thread_time() - started

    def is_linear() -> bool:
        small = min(seconds(max_bytes >> 4) for _ in range(3))
        return seconds(max_bytes) < 64 * max(small, 0.002 * (max_bytes / (1 << 20)) ** 2)

    collects = gc.isenabled()
    gc.disable()
    try:
        return any(is_linear() for _ in range(5))
    finally:
        if collects:
            gc.enable()
