"""JSON Schemas of the structured results of tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

APPROVAL: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "approval": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("id", "status", "tool")},
            "required": ["id", "status", "tool"],
        }
    },
    "required": ["approval"],
}
"""Structured content of a reply to a call that awaits approval."""


@cache
def build_output_schema(
    results: tuple[type[msgspec.Struct], ...], *, can_wait: bool
) -> Mapping[str, Any]:
    """Schema without references of an object of one of the types.

    With `can_wait`, a reply may be an approval instead. Without types, any object fits.
    """
    schemas = [_inline(msgspec.json.schema(result)) for result in results]
    if can_wait:
        schemas.append(APPROVAL)
    if not schemas:
        return {"type": "object"}
    return schemas[0] if len(schemas) == 1 else {"type": "object", "anyOf": schemas}


def _inline(document: Mapping[str, Any]) -> Mapping[str, Any]:
    definitions = document["$defs"]

    def resolve(schema: Any) -> Any:
        if isinstance(schema, list):
            return [resolve(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return resolve(definitions[schema["$ref"].rpartition("/")[2]])
        return {key: resolve(value) for key, value in schema.items() if key != "title"}

    inlined: Mapping[str, Any] = resolve({"$ref": document["$ref"]})
    return inlined
