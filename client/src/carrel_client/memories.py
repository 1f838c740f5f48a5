"""An agent's memories, and the dreams that promote them into MEMORY.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse, Refusal
from carrel_client.http_messages import HttpRequest
from carrel_client.models import (
    Model,
    model_from_json,
    model_list_field,
    models_from_json,
    wire_name,
)
from carrel_client.requests import (
    api_path,
    get_json,
    items_of,
    list_pages,
    send_idempotent,
    send_json,
)
from carrel_client.tools import call_tool
from carrel_client.unset import UNSET, Unset, patch_body


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Model):
    id: str
    content: str
    scope: str
    """main or shared."""
    tags: tuple[str, ...]
    concept_tags: tuple[str, ...]
    kind: str | None
    created_at: datetime
    promoted_at: datetime | None
    """Time at which a dream promoted it into MEMORY.md."""
    score: float | None = None
    """Score of a search hit: 1 for the best, 1/2 for the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory(Model):
    """A memory as the agent's tool ``recall`` returns it."""

    id: str
    content: str
    tags: tuple[str, ...]
    score: float
    remembered_at: str = wire_name("remembered_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedMemory(Model):
    memory_id: str
    content: str | None
    """None if it was forgotten since."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedMemory(Model):
    memory_id: str
    content: str | None
    score: float
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamRow(Model):
    """A dream without its memories."""

    id: str
    agent_id: str
    status: str
    author: str = wire_name("by")
    started_at: datetime
    candidates: int
    skipped: int
    promoted_count: int
    reasons: Mapping[str, int]
    """How many memories were rejected, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dream(DreamRow):
    dry_run: bool
    promoted: tuple[PromotedMemory, ...] = model_list_field(PromotedMemory)
    rejected: tuple[RejectedMemory, ...] = model_list_field(RejectedMemory)
    diff: str
    """Unified diff of MEMORY.md."""


class Memories(Resource[Driver]):
    """Memories of an agent."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _path(self, *segments: str) -> str:
        return api_path("agents", self._agent, "memories", *segments)

    @operation
    def remember(
        self,
        content: str,
        *,
        tags: Collection[str] = (),
        kind: str | None = None,
        scope: str = "main",
        supersedes: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Memory]:
        """Store a memory as one line; an existing memory is returned unchanged.

        ``supersedes`` is the id of the memory that it replaces.
        """
        body: dict[str, Any] = {"content": content, "tags": [*tags], "scope": scope}
        body |= {"kind": kind} if kind else {}
        body |= {"supersedes": supersedes} if supersedes else {}
        memory = yield from send_json("POST", self._path(), body, idempotency_key=idempotency_key)
        return model_from_json(Memory, memory)

    @operation
    def recall(self, query: str, *, limit: int = 5) -> Steps[tuple[RecalledMemory, ...]]:
        """Search as the agent's tool does; the hits count as recalls.

        Raises NotFound if the agent does not have the tool.
        """
        arguments = {"query": query, "limit": limit}
        reply = yield from call_tool(self._agent, "recall", arguments, {})
        if reply.is_error:
            raise Refusal(reply.content)
        try:
            return models_from_json(RecalledMemory, reply.structured["memories"])
        except (KeyError, TypeError):
            raise InvalidResponse("the reply of the tool has no memories") from None

    @operation
    def search(self, query: str, *, limit: int = 5) -> Steps[tuple[Memory, ...]]:
        """Return the memories that match words, best first. Counts no recalls."""
        page = yield from get_json(self._path(), {"q": query, "limit": str(limit)})
        return models_from_json(Memory, items_of(page))

    @operation
    def list(self) -> Steps[tuple[Memory, ...]]:
        """All memories, oldest first."""
        return models_from_json(Memory, (yield from list_pages(self._path())))

    @operation
    def get(self, memory_id: str) -> Steps[Memory]:
        """Raises NotFound."""
        return model_from_json(Memory, (yield from get_json(self._path(memory_id))))

    @operation
    def change(
        self,
        memory_id: str,
        *,
        content: str | Unset = UNSET,
        tags: Collection[str] | Unset = UNSET,
        kind: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
    ) -> Steps[Memory]:
        """Change the given fields; the id and the recalls stay. Raises NotFound, Conflict."""
        labels = tags if isinstance(tags, Unset) else [*tags]
        body = patch_body({"content": content, "tags": labels, "kind": kind})
        memory = yield from send_json(
            "PATCH", self._path(memory_id), body, idempotency_key=idempotency_key
        )
        return model_from_json(Memory, memory)

    @operation
    def forget(self, memory_id: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Delete a memory and its dreamed line in MEMORY.md."""
        request = HttpRequest("DELETE", self._path(memory_id))
        yield from send_idempotent(request, idempotency_key)


class Dreams(Resource[Driver]):
    """An agent's dreams."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _path(self, *segments: str) -> str:
        return api_path("agents", self._agent, "dreams", *segments)

    @operation
    def sweep(
        self, *, dry_run: bool = False, force: bool = False, idempotency_key: str | None = None
    ) -> Steps[Dream]:
        """Run a dream; ``dry_run`` only reports promotions and rejections.

        Raises Conflict if a scheduled agent dreamed within its interval, unless ``force`` is set.
        """
        body = {"dryRun": dry_run, "force": force}
        dream = yield from send_json("POST", self._path(), body, idempotency_key=idempotency_key)
        return model_from_json(Dream, dream)

    @operation
    def list(self) -> Steps[tuple[DreamRow, ...]]:
        """Return the latest dreams, newest first."""
        return models_from_json(DreamRow, items_of((yield from get_json(self._path()))))

    @operation
    def get(self, dream_id: str) -> Steps[Dream]:
        """Raises NotFound."""
        return model_from_json(Dream, (yield from get_json(self._path(dream_id))))

    @operation
    def approve(self, dream_id: str, *, idempotency_key: str | None = None) -> Steps[Dream]:
        """Apply a proposal. Raises WorkspaceConflict if MEMORY.md has changed."""
        path = self._path(dream_id, "approve")
        dream = yield from send_json("POST", path, idempotency_key=idempotency_key)
        return model_from_json(Dream, dream)

    @operation
    def reject(
        self, dream_id: str, reason: str = "", *, idempotency_key: str | None = None
    ) -> Steps[Dream]:
        path, body = self._path(dream_id, "reject"), {"reason": reason}
        dream = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return model_from_json(Dream, dream)
