"""Items that agents share: values by key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.http_messages import HttpRequest
from carrel_client.models import Model, model_from_json, models_from_json
from carrel_client.requests import (
    api_path,
    get_json,
    list_pages,
    send_idempotent,
    send_json,
    write_headers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow(Model):
    """An item with the first 100 characters of its value."""

    key: str
    preview: str
    created_by: str
    """The id of the agent or person who created it."""
    created_at: datetime
    updated_at: datetime
    version: int
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Model):
    key: str
    value: str
    created_by: str
    created_at: datetime
    updated_at: datetime
    version: int
    etag: str


class Items(Resource[Driver]):
    """The items of one agent: its person's, or its own if it is shared."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _path(self, *segments: str) -> str:
        return api_path("agents", self._agent, "items", *segments)

    @operation
    def get(self, key: str, *, version: int | None = None) -> Steps[Item]:
        """An item as it is now, or as it was at a version. Raises NotFound."""
        query = {} if version is None else {"version": str(version)}
        return model_from_json(Item, (yield from get_json(self._path(key), query)))

    @operation
    def list(self, prefix: str = "") -> Steps[tuple[ItemRow, ...]]:
        """All items whose key starts with a prefix, the last written first."""
        rows = yield from list_pages(self._path(), {"prefix": prefix})
        return models_from_json(ItemRow, rows)

    @operation
    def put(  # noqa: PLR0913 - conditions and provenance, by name
        self,
        key: str,
        value: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Item]:
        """Create or replace an item. Raises WorkspaceConflict if a condition fails."""
        headers = write_headers(
            if_match=if_match, if_none_match=if_none_match, reason=reason, run_id=run_id
        )
        path, body = self._path(key), {"value": value}
        item = yield from send_json(
            "PUT", path, body, headers=headers, idempotency_key=idempotency_key
        )
        return model_from_json(Item, item)

    @operation
    def delete(
        self,
        key: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[None]:
        """Delete an item for all agents that share it."""
        headers = write_headers(
            if_match=if_match, if_none_match=if_none_match, reason=reason, run_id=run_id
        )
        request = HttpRequest("DELETE", self._path(key), headers=headers)
        yield from send_idempotent(request, idempotency_key)
