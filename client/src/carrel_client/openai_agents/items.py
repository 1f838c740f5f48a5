"""Items of the OpenAI Agents SDK as entries of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from agents import TResponseInputItem

from carrel_client.sessions import Entry, NewEntry

SOURCE: Final = "openai-agents"
"""Source of the entries; others of the session are not items."""
_ROLES: Final = {"user": "user", "assistant": "assistant"}
_SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_OUTPUT: Final = "_output"


def entry_from_item(item: TResponseInputItem, run_id: str | None) -> NewEntry:
    """Raises TypeError for an item that is not JSON."""
    fields = cast(Mapping[str, Any], item)
    return NewEntry(
        role=_role(fields),
        content=_text(fields),
        item=dict(fields),
        source_plugin=SOURCE,
        run_id=run_id,
    )


def items_of_entries(entries: Iterable[Entry]) -> list[TResponseInputItem]:
    return [cast(TResponseInputItem, entry.item) for entry in entries if is_item(entry)]


def is_item(entry: Entry) -> bool:
    return entry.source_plugin == SOURCE and isinstance(entry.item, dict)


def _role(item: Mapping[str, Any]) -> str:
    role = item.get("role")
    if role in _SYSTEM_ROLES:
        return "system"
    if role in _ROLES:
        return _ROLES[role]
    return "tool" if str(item.get("type", "")).endswith(_OUTPUT) else "assistant"


def _text(item: Mapping[str, Any]) -> str | None:
    """What people read of an item; None if the entry is to have the text of the item."""
    content = item.get("content", item.get("output"))
    if isinstance(content, str):
        return content or None
    parts = content if isinstance(content, list) else ()
    texts = [part["text"] for part in parts if isinstance(part, dict) and "text" in part]
    return "\n".join(map(str, texts)) or None
