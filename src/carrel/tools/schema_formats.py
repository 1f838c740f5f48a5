"""Tools as those describe them who offer them to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from carrel.tools.tool import Tool

OPEN: Final = frozenset({"bash"})
"""The tools that may reach what is not Carrel's."""
REPEATABLE: Final = frozenset(
    {
        *("forget", "remember", "write"),
        *("workspace_delete", "workspace_publish", "workspace_write"),
    }
)
"""The tools that write and, called again just so, leave everything as it is then."""


class SchemaFormat(StrEnum):
    MCP = "mcp"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


def described(
    tool: Tool, dialect: SchemaFormat, schema: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """With the schema that it has for one agent, where that is another than its own."""
    return _SAYS[dialect](tool, tool.schema if schema is None else schema)


def _mcp(tool: Tool, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
        "annotations": _hints(tool),
    }


def _hints(tool: Tool) -> Mapping[str, Any]:
    """What a client may tell its user before a call; of one that only reads there is less."""
    hints = {"readOnlyHint": not tool.writes, "openWorldHint": tool.name in OPEN}
    if tool.writes:
        hints |= {"destructiveHint": tool.destructive, "idempotentHint": tool.name in REPEATABLE}
    return hints


def _anthropic(tool: Tool, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _openai(tool: Tool, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Strict, which there means that everything is required and what may be left out is null."""
    properties = {
        name: said if name in schema["required"] else _or_null(said)
        for name, said in schema["properties"].items()
    }
    strict = {**schema, "properties": properties, "required": list(properties)}
    told = {"name": tool.name, "description": tool.description, "strict": True}
    return {"type": "function", "function": {**told, "parameters": strict}}


def _or_null(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without a default, which a strict schema may not have."""
    plain = {word: value for word, value in said.items() if word not in {"default", "description"}}
    told = {"description": said["description"]} if "description" in said else {}
    return {**told, "anyOf": [plain, {"type": "null"}]}


_SAYS: Final[Mapping[SchemaFormat, Callable[[Tool, Mapping[str, Any]], Mapping[str, Any]]]] = {
    SchemaFormat.MCP: _mcp,
    SchemaFormat.OPENAI: _openai,
    SchemaFormat.ANTHROPIC: _anthropic,
}
