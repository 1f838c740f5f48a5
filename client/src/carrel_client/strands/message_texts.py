"""Role and text of Strands' messages, as entries of a transcript have them."""

from __future__ import annotations

from typing import Any

from strands.types.content import Message


def message_role(message: Message) -> str:
    """The role of an entry: a message with the results of tools is the tool's."""
    if any("toolResult" in block for block in message["content"]):
        return "tool"
    return str(message["role"])


def message_text(message: Message) -> str:
    """The text of a message, without that of tool calls; results of tools are included."""
    return "\n".join(filter(None, map(_block_text, message["content"])))


def _block_text(block: Any) -> str:
    if "text" in block:
        return str(block["text"])
    if "toolResult" in block:
        contents = block["toolResult"]["content"]
        return "\n".join(str(part["text"]) for part in contents if "text" in part)
    return ""
