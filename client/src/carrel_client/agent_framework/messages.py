"""Agent Framework's messages as entries of a session, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from agent_framework import Content, Message

from carrel_client.runtimes.session_log import items_of_kind, iter_items_of_kind
from carrel_client.sessions import Entry, NewEntry

KIND: Final = "agent_framework"
"""Marks the items of this adapter."""
_ROLES: Final = frozenset({"user", "assistant", "tool", "system"})


def message_item(message: Message) -> dict[str, Any]:
    return {"kind": KIND, "message": message.to_dict()}


def message_entry(message: Message) -> NewEntry:
    return NewEntry(
        role=message_role(message),
        content=message_text(message) or None,
        item=message_item(message),
        message_id=message.message_id,
    )


def message_role(message: Message) -> str:
    return message.role if message.role in _ROLES else "system"


def message_text(message: Message) -> str:
    """The text of a message, results of tools included."""
    return "\n".join(filter(None, map(_content_text, message.contents)))


def messages_from_entries(entries: Iterable[Entry]) -> list[Message]:
    """The messages that were written by Agent Framework, in order."""
    return list(map(_message_from_item, items_of_kind(entries, KIND)))


def last_messages(entries: Sequence[Entry], count: int) -> list[Message]:
    """The last of these messages, in order."""
    items = islice(iter_items_of_kind(reversed(entries), KIND), count)
    return list(map(_message_from_item, items))[::-1]


def _message_from_item(item: Mapping[str, Any]) -> Message:
    return Message.from_dict(dict(item["message"]))


def _content_text(content: Content | Mapping[str, Any]) -> str:
    if not isinstance(content, Content):
        return ""
    if content.type == "text":
        return content.text or ""
    if content.type == "function_result":
        return str(content.result if content.result is not None else "")
    return ""
