"""Files of every place: listed, read, explained, with their history."""

from __future__ import annotations

from typing import Any, Final, cast

from ariadne import ObjectType, QueryType

from carrel.actions.files import files, history
from carrel.actions.overlay import stacks
from carrel.actions.overlay.pins import can_see_agent
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, digest
from carrel.core.overlay.compose import Workspace
from carrel.core.overlay.layers import stack_of
from carrel.server.graphql.arguments import Given, prefix_of
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.file_types import Explanation, File, LayerEntry, VersionRow
from carrel.server.graphql.types import Agent, NamedRecord, Page

query: Final = QueryType()
agent: Final = ObjectType("Agent")
template: Final = ObjectType("Template")
file_type: Final = ObjectType("File")
file_type.set_alias("class", "file_class")
TYPES: Final = (query, agent, template, file_type)


async def stack_at(context: ResolverContext, place: Given) -> Stack:
    """Where something is asked for. Raises Missing, or Malformed where it is not one place."""
    ports, actor = context.ports, context.actor
    match place:
        case {"agent_id": str(name)}:
            return await stacks.agent_stack(ports, actor, name)
        case {"template_id": str(name)}:
            return await stacks.template_stack(ports, actor, name)
        case {"workspace_id": str(name)}:
            return await stacks.workspace_stack(ports, actor, name)
        case {"defaults": True}:
            return await stacks.defaults_stack(ports, actor)
        case _:
            raise ValidationError("a place is agentId, templateId, workspaceId or defaults: true")


def paged(workspace: Workspace, stack: Stack, first: int, after: str) -> Page[File]:
    """Those of its files whose paths come after one."""
    paths = [path for path in workspace.files if path.text > after]
    items = [File.of(workspace.files[path], stack) for path in paths[:first]]
    return Page(items, paths[first - 1].text if len(paths) > first else None)


async def _page(context: ResolverContext, stack: Stack, given: Given) -> Page[File]:
    workspace = await context.workspaces.load((stack, prefix_of(given["prefix"])))
    return paged(workspace, stack, given["first"], given["after"])


async def _one(context: ResolverContext, stack: Stack, path: str) -> File:
    return File.of(await files.find_file(context.ports, stack, Path(path)), stack)


@query.field("files")
async def files_of_place(_: Any, info: Info, place: Given, **given: Any) -> Page[File]:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    return await _page(context, await stack_at(context, place), given)


@query.field("file")
async def file_of_place(_: Any, info: Info, place: Given, path: str) -> File:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    return await _one(context, await stack_at(context, place), path)


def _agents_own(context: ResolverContext, source: Agent) -> Stack:
    context.must(Permission.WORKSPACE_READ)
    if not can_see_agent(context.actor, source.record):
        raise NotFound(f"there is no agent {source.id}")
    return stack_of(source.record)


def _templates_own(context: ResolverContext, source: NamedRecord) -> Stack:
    context.must(Permission.WORKSPACE_READ)
    if context.actor.is_confined:
        raise NotFound(f"there is no template {source.id}")
    return (Scope(context.actor.tenant, ScopeKind.TEMPLATE, source.id),)


@agent.field("files")
async def files_of_agent(source: Agent, info: Info, **given: Any) -> Page[File]:
    return await _page(info.context, _agents_own(info.context, source), given)


@agent.field("file")
async def file_of_agent(source: Agent, info: Info, path: str) -> File:
    return await _one(info.context, _agents_own(info.context, source), path)


@template.field("files")
async def files_of_template(source: NamedRecord, info: Info, **given: Any) -> Page[File]:
    return await _page(info.context, _templates_own(info.context, source), given)


@template.field("file")
async def file_of_template(source: NamedRecord, info: Info, path: str) -> File:
    return await _one(info.context, _templates_own(info.context, source), path)


@file_type.field("renderedSha256")
async def rendered_sha256(source: File, info: Info) -> str:
    if source.shown.variables is None:
        return source.sha256
    stored = await info.context.bytes_of(source.path, source.shown.blob)
    return digest(files.render_content(source.shown, stored)).removeprefix("sha256:")


def text_of(path: str, content: bytes) -> str:
    """The content as JSON can carry it. Raises Taken for one that is not text."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Conflict(f"{path} is not text, and this answer carries only text") from None


@file_type.field("content")
async def content_of(source: File, info: Info, raw: bool) -> str:
    stored = await info.context.bytes_of(source.path, source.shown.blob)
    return text_of(source.path, stored if raw else files.render_content(source.shown, stored))


@file_type.field("history")
async def history_of(
    source: File, info: Info, first: int, before: int | None = None
) -> Page[VersionRow]:
    context = info.context
    try:
        found = await history.page(
            context.ports, source.stack, source.shown.path, before=before, limit=first
        )
    except NotFound:
        return Page([], None)
    rows = [VersionRow.of(version) for version in found.items]
    return Page(rows, int(found.next) if found.next else None)


@file_type.field("diff")
async def diff_of(source: File, info: Info, **given: int | None) -> str:
    context = info.context
    old, new = given.get("from"), given.get("to")
    return await history.diff(context.ports, source.stack, source.shown.path, old, new)


async def _explained(context: ResolverContext, stack: Stack, path: Path) -> Explanation:
    found = await history.explain(context.ports, stack, path)
    source = cast(str, found.winner.source.kind) if found.winner else None
    return Explanation(path.text, source, found.why, [LayerEntry.of(one) for one in found.layers])


@file_type.field("explain")
async def explain_file(source: File, info: Info) -> Explanation:
    return await _explained(info.context, source.stack, source.shown.path)


@query.field("explain")
async def explain(_: Any, info: Info, place: Given, path: str) -> Explanation:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    return await _explained(context, await stack_at(context, place), Path(path))
