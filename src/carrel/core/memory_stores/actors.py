"""Authors of versions as the Memory Stores API names them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class ActorKind(StrEnum):
    SESSION = "session_actor"
    API = "api_actor"
    USER = "user_actor"


class MemoryActor(Struct, frozen=True):
    kind: ActorKind
    id: str
    """Of the run, the key or the person."""


def memory_actor(author: str, run: str | None = None) -> MemoryActor | None:
    """Who wrote: a run, else a person or a key; None for the server itself."""
    if run is not None:
        return MemoryActor(ActorKind.SESSION, run)
    if author.startswith("per_"):
        return MemoryActor(ActorKind.USER, author)
    return MemoryActor(ActorKind.API, author) if author.startswith("key_") else None
