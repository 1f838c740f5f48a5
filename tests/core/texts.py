"""Texts to search for secrets: random ones, ones that were searched, and ones made to be slow."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from time import thread_time

from carrel.core.shapes import find_shapes

LETTERS = string.ascii_letters + string.digits


def some(length: int, alphabet: str = LETTERS) -> str:
    """Random letters, the same in every run."""
    return "".join(random.Random(length).choices(alphabet, k=length))


def redacted(text: str) -> str:
    """The text with `<name>` in place of every shape."""
    content = text.encode()
    for start, end, name in reversed(find_shapes(content)):
        content = content[:start] + b"<%b>" % name.encode() + content[end:]
    return content.decode()


def takes_linear_time(search: Callable[[bytes], object], start: str, unit: str) -> bool:
    """Whether 1 MiB takes less than 64 times as long as 64 KiB: 16 if linear, 256 if quadratic.

    This thread's own time is compared, so that a busy machine is no slower. What stays below two
    milliseconds for 64 KiB is taken for two.
    """

    def seconds(size: int) -> float:
        content = (start + unit * (size // len(unit))).encode()
        started = thread_time()
        search(content)
        return thread_time() - started

    small = max(min(seconds(1 << 16) for _ in range(3)), 0.002)
    return any(seconds(1 << 20) < 64 * small for _ in range(3))
