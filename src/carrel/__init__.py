"""Carrel: a private desk for every AI agent, with layered, versioned files frozen for every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from carrel.core.version import VERSION as __version__

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from carrel.faces.python import Carrel

__all__ = ["__version__", "open"]


def open(where: str = "carrel-data", **settings: Any) -> AbstractAsyncContextManager[Carrel]:
    """Open a store in this process: a directory, or the URL of a database.

    Use it as ``async with carrel.open("my-data") as desk``. Settings are those of the server, by
    the same names; the environment is not read.
    """
    from carrel.wiring import open_carrel  # noqa: PLC0415 - so that importing carrel stays cheap

    return open_carrel(where, settings)
