"""Sandboxes and shared workspaces of the account, which agents refer to by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import (
    Forbidden,
    InvalidResponse,
    NotFound,
    PayloadTooLarge,
    Refusal,
    ValidationError,
)
from carrel_client.http_messages import HttpRequest
from carrel_client.models import Model, model_from_json, wire_name
from carrel_client.requests import encode_segment, get_json, send_idempotent, send_json
from carrel_client.unset import UNSET, Unset, patch_body

_ROOT: Final = "/accounts/me"
_BY_STATUS: Final[Mapping[int, type[Refusal]]] = {
    400: ValidationError,
    403: Forbidden,
    404: NotFound,
    413: PayloadTooLarge,
}
"""Error classes by status: refusals of this API have a message but no code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox(Model):
    id: str = wire_name("sandboxId")
    name: str
    config: Mapping[str, Any]
    """Secrets in it are masked."""
    created_at: datetime
    updated_at: datetime
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRecord(Model):
    """A shared workspace; ``client.workspace(id)`` has its files."""

    id: str = wire_name("workspaceId")
    namespace: str
    name: str
    config: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    description: str | None = None


Record = TypeVar("Record", bound=Model)


class AccountRecords(Resource[Driver], Generic[Driver, Record]):
    """Records of one type."""

    type_name: ClassVar[str]
    model: ClassVar[type[Any]]

    @operation
    def create(
        self,
        name: str,
        config: Mapping[str, Any] | None = None,
        *,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Record]:
        """Raises ValidationError."""
        body = {"name": name, "config": config, "description": description}
        return (yield from self._send("POST", self._path(), body, idempotency_key))

    @operation
    def get(self, record_id: str) -> Steps[Record]:
        """Raises NotFound."""
        return self._model((yield from _by_status(get_json(self._path(record_id)))))

    @operation
    def list(self) -> Steps[tuple[Record, ...]]:
        """Return all records, oldest first."""
        body = yield from _by_status(get_json(self._path()))
        rows = body.get(self.type_name) if isinstance(body, Mapping) else None
        if not isinstance(rows, list):
            raise InvalidResponse(f"the response is not a list of {self.type_name}")
        return tuple(map(self._model, rows))

    @operation
    def change(
        self,
        record_id: str,
        *,
        name: str | Unset = UNSET,
        description: str | Unset | None = UNSET,
        config: Mapping[str, Any] | Unset | None = UNSET,
        idempotency_key: str | None = None,
    ) -> Steps[Record]:
        """Change the given fields; ``config`` is merged, and None removes a key."""
        body = patch_body({"name": name, "description": description, "config": config})
        return (yield from self._send("PATCH", self._path(record_id), body, idempotency_key))

    @operation
    def delete(self, record_id: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Delete a record; a workspace with all its files. Raises NotFound."""
        request = HttpRequest("DELETE", self._path(record_id))
        yield from _by_status(send_idempotent(request, idempotency_key))

    def _send(self, method: str, path: str, body: Any, key: str | None) -> Steps[Record]:
        row = yield from _by_status(send_json(method, path, body, idempotency_key=key))
        return self._model(row)

    def _path(self, *segments: str) -> str:
        return "/".join((_ROOT, self.type_name, *map(encode_segment, segments)))

    def _model(self, row: Any) -> Record:
        record: Record = model_from_json(self.model, row)
        return record


class Sandboxes(AccountRecords[Driver, Sandbox]):
    """Sandboxes in which agents run commands."""

    type_name = "sandboxes"
    model = Sandbox


class WorkspaceRecords(AccountRecords[Driver, WorkspaceRecord]):
    """Workspaces that several agents share."""

    type_name = "workspaces"
    model = WorkspaceRecord


def _by_status(steps: Steps[Any]) -> Steps[Any]:
    """Return the result of steps; raise a refusal without a code by its status."""
    try:
        return (yield from steps)
    except Refusal as refusal:
        kind = _BY_STATUS.get(refusal.status or 0)
        if kind is None or type(refusal) is not Refusal:
            raise
        raise kind(refusal.message, status=refusal.status, code=refusal.code) from None
