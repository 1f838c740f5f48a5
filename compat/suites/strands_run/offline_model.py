"""A Strands model without a network: it gives the replies that it was given."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

from strands.models import Model


class OfflineModel(Model):
    """Each reply is a text, or the name and arguments of a tool call."""

    def __init__(self, *replies: str | tuple[str, dict[str, Any]]) -> None:
        self._replies = iter(replies)
        self._calls = 0
        self.prompts: list[str | None] = []

    def update_config(self, **model_config: Any) -> None:
        """There is nothing to configure."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(
        self, output_model: Any, prompt: Any, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        raise NotImplementedError

    async def stream(
        self,
        messages: Any,
        tool_specs: Any = None,
        system_prompt: str | None = None,
        **kwargs: Any,
    ) -> AsyncIterable[Any]:
        self.prompts.append(system_prompt)
        reply = next(self._replies, None)
        if reply is None:
            raise RuntimeError("the model has no reply left")
        yield {"messageStart": {"role": "assistant"}}
        start: dict[str, Any] = {}
        delta: dict[str, Any] = {"text": reply}
        if not isinstance(reply, str):
            self._calls += 1
            name, arguments = reply
            start = {"toolUse": {"name": name, "toolUseId": f"call_{id(self)}_{self._calls}"}}
            delta = {"toolUse": {"input": json.dumps(arguments)}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if start else "end_turn"}}
