"""Tool definitions in the formats of MCP, OpenAI and Anthropic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from carrel.tools.tool import Tool

OPEN_WORLD: Final = frozenset({"bash"})
"""Tools that may reach systems outside Carrel."""
IDEMPOTENT: Final = frozenset(
    {
        *("forget", "remember", "write"),
        *("workspace_delete", "workspace_publish", "workspace_write"),
    }
)
"""Writing tools for which repeating the same call has no further effect."""


class SchemaFormat(StrEnum):
    MCP = "mcp"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


def describe_tool(
    tool: Tool, schema_format: SchemaFormat, schema: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Tool definition; `schema` replaces the tool's default schema."""
    return _FORMATTERS[schema_format](tool, tool.schema if schema is None else schema)


def _mcp(tool: Tool, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
        "outputSchema": tool.output_schema,
        "annotations": _hints(tool),
    }


def _hints(tool: Tool) -> Mapping[str, Any]:
    """MCP annotations; the destructive and idempotent hints only for writing tools."""
    hints = {"readOnlyHint": not tool.writes, "openWorldHint": tool.name in OPEN_WORLD}
    if tool.writes:
        hints |= {"destructiveHint": tool.destructive, "idempotentHint": tool.name in IDEMPOTENT}
    return hints


def _anthropic(tool: Tool, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _openai(tool: Tool, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """OpenAI strict format: every property is required, optional ones are nullable.

    A tool with an argument of any keys is not strict, since strict schemas allow none.
    """
    properties = {
        name: property_schema if name in schema["required"] else _nullable(property_schema)
        for name, property_schema in schema["properties"].items()
    }
    strict = {**schema, "properties": properties, "required": list(properties)}
    has_free_keys = any("additionalProperties" in item for item in schema["properties"].values())
    function = {"name": tool.name, "description": tool.description, "strict": not has_free_keys}
    return {"type": "function", "function": {**function, "parameters": strict}}


def _nullable(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nullable schema without default, which strict mode does not allow."""
    plain = {
        keyword: value
        for keyword, value in schema.items()
        if keyword not in {"default", "description"}
    }
    description = {"description": schema["description"]} if "description" in schema else {}
    return {**description, "anyOf": [plain, {"type": "null"}]}


_FORMATTERS: Final[
    Mapping[SchemaFormat, Callable[[Tool, Mapping[str, Any]], Mapping[str, Any]]]
] = {
    SchemaFormat.MCP: _mcp,
    SchemaFormat.OPENAI: _openai,
    SchemaFormat.ANTHROPIC: _anthropic,
}
