"""An ADK model without a network: it gives the replies that it was given."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from pydantic import PrivateAttr

Reply = str | tuple[str, dict[str, Any]]


class OfflineModel(BaseLlm):
    """Each reply is a text, or the name and arguments of a tool call."""

    model: str = "offline"
    _replies: Any = PrivateAttr()
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *replies: Reply) -> OfflineModel:
        model = cls()
        model._replies = iter(replies)
        return model

    @property
    def prompts(self) -> list[str]:
        return [str(request.config.system_instruction) for request in self._requests]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(llm_request)
        reply = next(self._replies, None)
        if reply is None:
            raise RuntimeError("the model has no reply left")
        part = (
            types.Part(text=reply)
            if isinstance(reply, str)
            else types.Part.from_function_call(name=reply[0], args=reply[1])
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))
