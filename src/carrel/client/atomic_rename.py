"""Two names that change places in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

_HERE: Final = -100
_EXCHANGE: Final = 2
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


@cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's, or None where it has none."""
    try:
        found: Any = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    found.restype = ctypes.c_int
    return found  # type: ignore[no-any-return]  # a function of C has no other type


def swap_names(one: str, other: str, within: int = _HERE) -> bool:
    """Whether they have changed places; not, where the system or the file system cannot.

    ``within`` is the descriptor of the directory that the names are of.
    """
    rename = _renameat2()
    if rename is None:
        return False
    if rename(within, os.fsencode(one), within, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), other)
