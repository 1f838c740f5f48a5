"""Webhook sender that imports the HTTP client on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from carrel.core.webhooks import PostResult

if TYPE_CHECKING:
    from carrel.adapters.webhook_transport import HttpWebhookSender


class LazyWebhookSender:
    """WebhookSender port. Use as an async context manager to close connections."""

    def __init__(self, allow_private: bool = False) -> None:
        self._allow_private = allow_private
        self._sender: asyncio.Future[HttpWebhookSender] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._sender is not None:
            await (await self._sender).__aexit__(exc_type, exc, traceback)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return await (await self._load()).send(url, headers, body)

    async def refusal_reason(self, url: str) -> str | None:
        return await (await self._load()).refusal_reason(url)

    async def _load(self) -> HttpWebhookSender:
        if self._sender is None:
            self._sender = asyncio.ensure_future(asyncio.to_thread(self._create))
        return await asyncio.shield(self._sender)

    def _create(self) -> HttpWebhookSender:
        from carrel.adapters.webhook_transport import HttpWebhookSender  # noqa: PLC0415 - slow import

        return HttpWebhookSender(self._allow_private)
