"""Webhooks: a server that serves this store posts to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from carrel.actions.events import webhooks
from carrel.actions.events.webhooks import EVERYTHING, WebhookPatch
from carrel.actions.records import Page
from carrel.core.store.record import Record
from carrel.server.python.caller import Resource, every, when


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook without its secret."""

    id: str
    url: str
    events: tuple[str, ...]
    active: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewWebhook:
    webhook: Webhook
    secret: str
    """By which the receiver knows us, shown this once."""


def _webhook(record: Record) -> Webhook:
    body = record.body
    events = tuple(body["events"])
    return Webhook(record.id, body["url"], events, body["active"], when(record.created_at))


class Webhooks(Resource):
    async def create(
        self, url: str, events: Iterable[str] = (EVERYTHING,), *, secret: str | None = None
    ) -> NewWebhook:
        """Raises Malformed, with the reason where the address is one that we do not post to."""
        made = await webhooks.create(self._ports, self._actor, url, tuple(events), secret=secret)
        return NewWebhook(_webhook(made.webhook), made.secret)

    async def get(self, id: str) -> Webhook:
        return _webhook(await webhooks.get(self._ports, self._actor, id))

    async def list(self) -> tuple[Webhook, ...]:
        async def page(cursor: str, limit: int) -> Page[Record]:
            return await webhooks.listing(self._ports, self._actor, cursor=cursor, limit=limit)

        return tuple(map(_webhook, await every(page)))

    async def change(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Iterable[str] | None = None,
        active: bool | None = None,
    ) -> Webhook:
        """Change what is given; the rest stays as it is."""
        patch = WebhookPatch(url, None if events is None else tuple(events), active)
        return _webhook(await webhooks.change(self._ports, self._actor, id, patch))

    async def delete(self, id: str) -> None:
        await webhooks.delete(self._ports, self._actor, id)
