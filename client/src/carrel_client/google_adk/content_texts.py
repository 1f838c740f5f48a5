"""Role and text of ADK's contents, as entries of a transcript have them."""

from __future__ import annotations

from google.genai import types


def content_role(content: types.Content | None, author: str = "") -> str:
    """The role of an entry: a content with the results of tools is the tool's."""
    if content and any(part.function_response for part in content.parts or ()):
        return "tool"
    if author == "user" or (not author and content and content.role == "user"):
        return "user"
    return "assistant" if content else "system"


def content_text(content: types.Content | None) -> str:
    """The text of a content, without thoughts; results of tools are included."""
    parts = (content.parts if content else None) or ()
    return "\n".join(filter(None, map(_part_text, parts)))


def _part_text(part: types.Part) -> str:
    if part.text and not part.thought:
        return part.text
    response = part.function_response.response if part.function_response else None
    return "" if response is None else "\n".join(map(str, response.values()))
