"""What we ask of git: to keep repositories that are made from the store, and to serve them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from carrel.core.git.objects import GitObject
from carrel.core.identifiers import Scope


class Repository(Protocol):
    """A git repository that nobody else changes for as long as it is held.

    It is made from what a scope said, may be lost, and is then made again.
    """

    async def key(self) -> str | None:
        """What it was begun with; None where there is none, or none that can be used."""

    async def refs(self) -> Mapping[str, str]:
        """The ids that names such as ``refs/heads/main`` stand for."""

    async def read(self, ids: Sequence[str]) -> tuple[GitObject | None, ...]:
        """Return each object, None where it is not there."""

    async def begin(self, key: str) -> None:
        """Start with an empty one, which takes the place of what is there once it is settled."""

    async def write(self, objects: Sequence[GitObject]) -> None:
        """Keep these durably. What is there already is kept once."""

    async def point(self, refs: Mapping[str, str]) -> None:
        """Let names stand for objects that are written already."""

    async def settle(self) -> None:
        """Put what was begun into its place, for all who ask from now on."""


class Repositories(Protocol):
    """The git repositories of scopes, on this machine."""

    def held(self, scope: Scope) -> AbstractAsyncContextManager[Repository]:
        """The repository of a scope, there or not, for one at a time of all processes here."""

    async def advertised(self, scope: Scope) -> bytes:
        """What git's upload-pack tells over HTTP of the names there are. Raises Missing."""

    async def packed(self, scope: Scope, request: bytes) -> AsyncIterator[bytes]:
        """What it answers to a request. Raises Missing, or Malformed for what is not one."""
