"""Resolvers for files: listing, content, history, diff and explanation."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final, cast

from ariadne import ObjectType, QueryType
from msgspec.structs import replace

from carrel.actions.files import files, history
from carrel.actions.overlay import stacks
from carrel.actions.overlay.stacks import ReadableStack
from carrel.actions.skills.skills import LoadedSkill, list_skills
from carrel.core.access import Permission
from carrel.core.agents.layers import build_stack
from carrel.core.errors import Conflict, Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, digest
from carrel.core.overlay.compose import Workspace
from carrel.server.graphql.arguments import ArgumentMap, parse_prefix
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.file_types import (
    ExplanationType,
    FileType,
    LayerEntryType,
    SkillType,
    VersionType,
)
from carrel.server.graphql.types import AgentType, NamedRecordType, PageType

query: Final = QueryType()
agent: Final = ObjectType("Agent")
template: Final = ObjectType("Template")
file_type: Final = ObjectType("File")
file_type.set_alias("class", "file_class")
TYPES: Final = (query, agent, template, file_type)


async def load_stack(context: ResolverContext, target: ArgumentMap) -> Stack:
    """Stack of a target. Raises NotFound, or ValidationError if the target is invalid."""
    ports, actor = context.ports, context.actor
    match target:
        case {"agent_id": str(name)}:
            return await stacks.agent_stack(ports, actor, name)
        case {"template_id": str(name)}:
            return await stacks.template_stack(ports, actor, name)
        case {"workspace_id": str(name)}:
            return await stacks.workspace_stack(ports, actor, name)
        case {"defaults": True}:
            return await stacks.defaults_stack(ports, actor)
        case _:
            raise ValidationError("a target is agentId, templateId, workspaceId or defaults: true")


async def load_readable_stack(context: ResolverContext, target: ArgumentMap) -> ReadableStack:
    """Stack of a target that is read. Raises like `load_stack`."""
    match target:
        case {"agent_id": str(name)}:
            return await stacks.readable_agent_stack(context.ports, context.actor, name)
        case _:
            return ReadableStack(await load_stack(context, target))


def files_page(workspace: Workspace, stack: Stack, first: int, after: str) -> PageType[FileType]:
    """Page of a workspace's files, ordered by path."""
    paths = [path for path in workspace.files if path.text > after]
    items = [FileType.from_file(workspace.files[path], stack) for path in paths[:first]]
    return PageType(items, paths[first - 1].text if len(paths) > first else None)


async def _page(
    context: ResolverContext, readable: ReadableStack, arguments: ArgumentMap
) -> PageType[FileType]:
    stack, prefix = readable.stack, parse_prefix(arguments["prefix"])
    workspace = await context.workspaces.load((stack, prefix))
    if readable.inherited_only:
        workspace = files.open_files(workspace)
    page = files_page(workspace, stack, arguments["first"], arguments["after"])
    items = [_restrict(file, readable) for file in page.items]
    return replace(page, items=items)


async def _find_file(context: ResolverContext, readable: ReadableStack, path: str) -> FileType:
    file = await files.get_file(
        context.ports, readable.stack, Path(path), inherited_only=readable.inherited_only
    )
    return _restrict(FileType.from_file(file, readable.stack), readable)


def _restrict(file: FileType, readable: ReadableStack) -> FileType:
    return replace(file, inherited_only=True) if readable.inherited_only else file


def _require_history(source: FileType) -> None:
    """Raise Forbidden if only the current content of the file is open to the caller."""
    if source.inherited_only:
        raise Forbidden("the history of an agent's files is private to the agent")


@query.field("files")
async def files_of_place(
    _: Any, info: Info, place: ArgumentMap, **arguments: Any
) -> PageType[FileType]:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    return await _page(context, await load_readable_stack(context, place), arguments)


@query.field("skills")
async def skills_of_place(_: Any, info: Info, place: ArgumentMap) -> list[SkillType]:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    readable = await load_readable_stack(context, place)
    skills = await list_skills(
        context.ports, readable.stack, inherited_only=readable.inherited_only
    )
    return [_skill_type(skill, readable) for skill in skills]


def _skill_type(skill: LoadedSkill, readable: ReadableStack) -> SkillType:
    definition = skill.definition
    return SkillType(
        name=skill.name,
        description=definition.description,
        valid=definition.is_valid,
        problems=definition.problems,
        digest=skill.folder.digest,
        files=tuple(
            _restrict(FileType.from_file(file, readable.stack), readable)
            for file in skill.folder.files.values()
        ),
    )


@query.field("file")
async def file_of_place(_: Any, info: Info, place: ArgumentMap, path: str) -> FileType:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    return await _find_file(context, await load_readable_stack(context, place), path)


def _agent_stack(context: ResolverContext, source: AgentType) -> ReadableStack:
    context.require(Permission.WORKSPACE_READ)
    inherited_only = not context.opens(source.record)
    return ReadableStack(build_stack(source.record), inherited_only=inherited_only)


def _template_stack(context: ResolverContext, source: NamedRecordType) -> ReadableStack:
    context.require(Permission.WORKSPACE_READ)
    if context.actor.is_confined:
        raise NotFound(f"no such template: {source.id}")
    return ReadableStack((Scope(context.actor.tenant, ScopeKind.TEMPLATE, source.id),))


@agent.field("files")
async def files_of_agent(source: AgentType, info: Info, **arguments: Any) -> PageType[FileType]:
    return await _page(info.context, _agent_stack(info.context, source), arguments)


@agent.field("file")
async def file_of_agent(source: AgentType, info: Info, path: str) -> FileType:
    return await _find_file(info.context, _agent_stack(info.context, source), path)


@template.field("files")
async def files_of_template(
    source: NamedRecordType, info: Info, **arguments: Any
) -> PageType[FileType]:
    return await _page(info.context, _template_stack(info.context, source), arguments)


@template.field("file")
async def file_of_template(source: NamedRecordType, info: Info, path: str) -> FileType:
    return await _find_file(info.context, _template_stack(info.context, source), path)


@file_type.field("renderedSha256")
async def rendered_sha256(source: FileType, info: Info) -> str:
    if source.composed.variables is None:
        return source.sha256
    stored = await info.context.read_bytes(source.path, source.composed.blob)
    return digest(files.render_content(source.composed, stored)).removeprefix("sha256:")


def decode_text(path: str, content: bytes) -> str:
    """Content as text. Raises Conflict if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Conflict(f"{path} is not UTF-8 text") from None


@file_type.field("content")
async def content_of(source: FileType, info: Info, raw: bool) -> str:
    stored = await info.context.read_bytes(source.path, source.composed.blob)
    return decode_text(
        source.path, stored if raw else files.render_content(source.composed, stored)
    )


@file_type.field("base64")
async def base64_of(source: FileType, info: Info, raw: bool) -> str:
    stored = await info.context.read_bytes(source.path, source.composed.blob)
    served = stored if raw else files.render_content(source.composed, stored)
    return b64encode(served).decode("ascii")


@file_type.field("history")
async def history_of(
    source: FileType, info: Info, first: int, before: int | None = None
) -> PageType[VersionType]:
    context = info.context
    _require_history(source)
    try:
        page = await history.list_versions(
            context.ports, source.stack, source.composed.path, before=before, limit=first
        )
    except NotFound:
        return PageType([], None)
    rows = [VersionType.from_version(version) for version in page.items]
    return PageType(rows, int(page.next) if page.next else None)


@file_type.field("diff")
async def diff_of(source: FileType, info: Info, **arguments: int | None) -> str:
    context = info.context
    _require_history(source)
    old, new = arguments.get("from"), arguments.get("to")
    return await history.diff(context.ports, source.stack, source.composed.path, old, new)


async def _explain(context: ResolverContext, stack: Stack, path: Path) -> ExplanationType:
    result = await history.explain(context.ports, stack, path)
    source = cast(str, result.winner.source.kind) if result.winner else None
    return ExplanationType(
        path.text,
        source,
        result.reason,
        [LayerEntryType.from_layer(layer) for layer in result.layers],
    )


@file_type.field("explain")
async def explain_file(source: FileType, info: Info) -> ExplanationType:
    _require_history(source)
    return await _explain(info.context, source.stack, source.composed.path)


@query.field("explain")
async def explain(_: Any, info: Info, place: ArgumentMap, path: str) -> ExplanationType:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    return await _explain(context, await load_stack(context, place), Path(path))
