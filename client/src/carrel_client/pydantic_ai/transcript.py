"""Messages of pydantic-ai in the transcript of a session, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from carrel_client.client import ApiClient
from carrel_client.drivers import await_steps
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.runtimes.session_entries import read_all

MESSAGE: Final = "pydantic_ai.message"
"""Type of the item of an entry; its ``message`` is what ModelMessagesTypeAdapter reads."""


def record_messages(run: AgentRun[Any], messages: Iterable[ModelMessage]) -> None:
    """Record messages for the run's session, tool calls included, instructions omitted."""
    for message in messages:
        stored = _without_instructions(message)
        if stored is None:
            continue
        [document] = ModelMessagesTypeAdapter.dump_python([stored], mode="json")
        item = {"type": MESSAGE, "message": document}
        run.record(_role(stored), _text(stored), item=item)


async def load_messages(client: ApiClient[Any], agent: str, session_id: str) -> list[ModelMessage]:
    """The messages that were recorded in a session, for ``message_history``."""
    entries = await await_steps(client._driver, read_all(client._driver, agent, session_id))
    documents = [
        entry.item["message"]
        for entry in entries
        if isinstance(entry.item, dict) and entry.item.get("type") == MESSAGE
    ]
    return ModelMessagesTypeAdapter.validate_python(documents)


def _without_instructions(message: ModelMessage) -> ModelMessage | None:
    """The run has the prompt; None if the message has nothing else."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
    return replace(message, parts=parts, instructions=None) if parts else None


def _role(message: ModelMessage) -> str:
    if isinstance(message, ModelResponse):
        return "assistant"
    is_user = any(isinstance(part, UserPromptPart) for part in message.parts)
    return "user" if is_user else "tool"


def _text(message: ModelMessage) -> str | None:
    """What people read of a message; None if it has only tool calls."""
    texts = []
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.content)
        elif isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts += [text for text in content if isinstance(text, str)]
        elif isinstance(part, BaseToolReturnPart):
            texts.append(part.model_response_str())
        elif isinstance(part, RetryPromptPart):
            texts.append(part.model_response())
    return "\n".join(texts) or None
