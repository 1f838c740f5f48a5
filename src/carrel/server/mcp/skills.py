"""An agent's skills over MCP: the extension `io.modelcontextprotocol/skills`.

The files of skills are resources `skill://NAME/PATH`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext

from carrel.actions.skills.artifacts import can_give_away, load_served, plain_files
from carrel.actions.skills.skills import LoadedSkill, find_skill
from carrel.core.errors import NotFound
from carrel.core.identifiers import digest
from carrel.core.overlay.compose import File
from carrel.core.skills.skill_definition import SKILL_FILE_NAME
from carrel.server.mcp.request_context import McpRequest
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
EXTENSION: Final = "io.modelcontextprotocol/skills"
SCHEME: Final = "skill://"
TEMPLATE: Final = types.ResourceTemplate(
    name="skill",
    title="A file of a skill",
    uri_template=f"{SCHEME}{{name}}/{{+path}}",
    description="Instructions of a skill (SKILL.md), or a file that they refer to.",
)
_CACHING: Final[Mapping[str, Any]] = {"ttlMs": 0, "cacheScope": "private"}


class SkillParams(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


async def list_skills(request: McpRequest, ctx: Context) -> dict[str, Any]:
    """List the valid skills that the audience may see, each with its files."""
    context = await request.tool_context(ctx.meta)
    entries = [await _entry(context, skill) for skill in await _served_skills(context)]
    rows = [entry for entry in entries if entry is not None]
    return {"resultType": "complete", "skills": rows, **_CACHING}


async def get_skill(request: McpRequest, ctx: Context, uri: str) -> dict[str, Any]:
    """Get one skill by the URI of its SKILL.md. Raises NotFound."""
    context = await request.tool_context(ctx.meta)
    name, path = split_uri(uri)
    skills = await _served_skills(context)
    entry = await _entry(context, find_skill(skills, name)) if path == SKILL_FILE_NAME else None
    if entry is None:
        raise NotFound(f"no such skill: {uri[:1200]}")
    return {"resultType": "complete", "skill": entry, **_CACHING}


async def find_skill_file(context: ToolContext, uri: str) -> File:
    """Find the file of a resource `skill://NAME/PATH`. Raises NotFound."""
    name, path = split_uri(uri)
    skill = find_skill(await _served_skills(context), name)
    file = plain_files(skill.folder).get(path)
    if file is None:
        raise NotFound(f"the skill {name} has no file {path}")
    return file


async def served_names(context: ToolContext) -> list[str]:
    """Names of the skills that the audience may see."""
    return [skill.name for skill in await _served_skills(context)]


async def load_instructions(context: ToolContext, name: str) -> types.EmbeddedResource:
    """SKILL.md of a skill as a resource in a message. Raises NotFound, also if it is damaged."""
    skill = find_skill(await _served_skills(context), name)
    contents = await load_served(context.ports, skill.folder)
    if contents is None:
        raise NotFound(f"the files of the skill {name} are damaged")
    text = contents[SKILL_FILE_NAME].decode()
    resource = types.TextResourceContents(
        uri=_uri(name, SKILL_FILE_NAME), mime_type="text/markdown", text=text
    )
    return types.EmbeddedResource(resource=resource)


def split_uri(uri: str) -> tuple[str, str]:
    """Name and path of a resource `skill://NAME/PATH`; the path is empty if there is none."""
    name, _, path = uri.removeprefix(SCHEME).partition("/")
    return unquote(name), unquote(path)


async def _served_skills(context: ToolContext) -> tuple[LoadedSkill, ...]:
    return tuple(filter(can_give_away, await context.list_skills()))


async def _entry(context: ToolContext, skill: LoadedSkill) -> dict[str, Any] | None:
    """Skill with the digests and sizes of the bytes that are served; None if it is damaged."""
    contents = await load_served(context.ports, skill.folder)
    if contents is None:
        return None
    resources = [
        {"uri": _uri(skill.name, path), "digest": digest(content), "size": len(content)}
        for path, content in contents.items()
    ]
    return {
        "uri": _uri(skill.name, SKILL_FILE_NAME),
        "frontmatter": dict(skill.definition.fields),
        "resources": resources,
    }


def _uri(name: str, path: str) -> str:
    return f"{SCHEME}{quote(name, safe='')}/{quote(path, safe='/')}"
