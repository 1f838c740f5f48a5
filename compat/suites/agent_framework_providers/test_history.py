"""What Agent Framework documents of a history provider."""

from __future__ import annotations

from typing import Any

import pytest
from agent_framework import Content, HistoryProvider, Message


def messages(*texts: str, role: str = "user") -> list[Message]:
    return [Message(role, [text], message_id=f"m-{text}") for text in texts]


async def texts(history: HistoryProvider, session: str | None) -> list[str]:
    return [message.text for message in await history.get_messages(session)]


async def test_history_begins_empty(history: HistoryProvider) -> None:
    assert await history.get_messages("chat") == []
    await history.save_messages("chat", [])
    assert await history.get_messages("chat") == []


async def test_messages_are_appended_in_order(history: HistoryProvider) -> None:
    await history.save_messages("chat", messages("one", "two"))
    await history.save_messages("chat", messages("three"))
    assert await texts(history, "chat") == ["one", "two", "three"]


async def test_repeated_history_is_not_stored_again(history: HistoryProvider) -> None:
    await history.save_messages("chat", messages("one", "two"))
    await history.save_messages("chat", messages("one", "two", "three"))
    assert await texts(history, "chat") == ["one", "two", "three"]


@pytest.mark.parametrize("id", ["other", "user/42", "ä ö", "Chat", "x" * 200, None])
async def test_sessions_are_separate(history: HistoryProvider, id: str | None) -> None:
    await history.save_messages("chat", messages("here"))
    assert await texts(history, id) == []
    await history.save_messages(id, messages("there"))
    assert await texts(history, id) == ["there"]
    assert await texts(history, "chat") == ["here"]


@pytest.mark.parametrize(
    "contents",
    [
        [
            Content.from_text("Hi."),
            Content.from_uri("https://a.example/b.png", media_type="image/png"),
        ],
        [Content.from_data(b"\0\xff", media_type="image/png")],
        [Content.from_function_call("call_1", "bash", arguments={"command": "ls"})],
        [Content.from_function_call("call_1", "bash", arguments='{"command": "ls"}')],
        [Content.from_function_result("call_1", result="hi")],
        [Content.from_function_result("call_1", exception="denied")],
        [Content.from_text_reasoning(text="Well …")],
        [],
    ],
    ids=["link", "bytes", "call", "call as text", "result", "error", "reasoning", "empty"],
)
async def test_message_comes_back(history: HistoryProvider, contents: Any) -> None:
    message = Message(
        "assistant",
        contents,
        author_name="ada",
        message_id="m-1",
        additional_properties={"a": {"b": [1, 2.5, None]}},
    )
    await history.save_messages("chat", [message])
    [loaded] = await history.get_messages("chat")
    assert loaded.to_dict() == message.to_dict()
