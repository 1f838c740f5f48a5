"""Posting to webhooks by what is loaded for the first: most who open a store post none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from carrel.core.webhooks import PostResult

if TYPE_CHECKING:
    from carrel.adapters.http_webhooks import HttpWebhookSender


class LazyWebhookSender:
    """Use it as a context, so that nothing stays open."""

    def __init__(self, allow_private: bool = False) -> None:
        self._allow_private = allow_private
        self._made: asyncio.Future[HttpWebhookSender] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._made is not None:
            await (await self._made).__aexit__(kind, problem, trace)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return await (await self._post()).send(url, headers, body)

    async def refusal_reason(self, url: str) -> str | None:
        return await (await self._post()).refusal_reason(url)

    async def _post(self) -> HttpWebhookSender:
        if self._made is None:
            self._made = asyncio.ensure_future(asyncio.to_thread(self._make))
        return await asyncio.shield(self._made)

    def _make(self) -> HttpWebhookSender:
        from carrel.adapters.http_webhooks import HttpWebhookSender  # noqa: PLC0415 - it takes a while to load

        return HttpWebhookSender(self._allow_private)
