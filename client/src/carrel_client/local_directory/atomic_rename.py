"""Exchange of two names in one step, on systems that can do it."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


@cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's function, or None if it has none."""
    try:
        function: Any = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    path = ctypes.c_char_p
    function.argtypes = (ctypes.c_int, path, ctypes.c_int, path, ctypes.c_uint)
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]  # a C function has no other type


def swap_names(first: str, second: str, directory_fd: int = _AT_FDCWD) -> bool:
    """Exchange two names; False if the system or the file system cannot.

    The names are relative to the directory of the descriptor. Raises OSError.
    """
    rename = _renameat2()
    if rename is None:
        return False
    names = os.fsencode(first), os.fsencode(second)
    if rename(directory_fd, names[0], directory_fd, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), second)
