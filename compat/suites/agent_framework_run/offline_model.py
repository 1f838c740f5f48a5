"""A chat client of Agent Framework without a network: it gives the replies that it was given."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)


class OfflineModel(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Each reply is a text, or the name and arguments of a tool call."""

    def __init__(self, *replies: str | tuple[str, dict[str, Any]]) -> None:
        super().__init__()
        self._replies = iter(replies)
        self.prompts: list[str] = []
        self.requests: list[list[Message]] = []

    def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        async def respond() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [self._reply(messages, options)])])

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[self._reply(messages, options)])

        if stream:
            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)
        return respond()

    def _reply(self, messages: Sequence[Message], options: Mapping[str, Any]) -> Content:
        self.prompts.append(str(options.get("instructions")))
        self.requests.append(list(messages))
        reply = next(self._replies, None)
        if reply is None:
            raise RuntimeError("the model has no reply left")
        if isinstance(reply, str):
            return Content.from_text(reply)
        return Content.from_function_call(
            f"call_{secrets.token_hex(4)}", reply[0], arguments=reply[1]
        )
