"""Runs, the files that they see, and what has changed since."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType
from msgspec.structs import replace

from carrel.actions.overlay.pins import can_see_agent
from carrel.actions.runs import diff, runs
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.overlay.compose import Workspace
from carrel.server.graphql.arguments import cursor_of
from carrel.server.graphql.context import Info
from carrel.server.graphql.file_types import File, RunChange, RunRow
from carrel.server.graphql.files import paged, text_of
from carrel.server.graphql.types import Agent, Page

query: Final = QueryType()
agent: Final = ObjectType("Agent")
run_type: Final = ObjectType("Run")
frozen_file: Final = ObjectType("FrozenFile")
frozen_file.set_alias("class", "file_class")
TYPES: Final = (query, agent, run_type, frozen_file)


@query.field("runs")
async def some_runs(
    _: Any, info: Info, first: int, after: str, agent_id: str | None = None
) -> Page[RunRow]:
    context = info.context
    context.must(Permission.RUNS_READ)
    found = await runs.page(
        context.ports, context.actor, agent=agent_id, cursor=cursor_of(after), limit=first
    )
    return Page([RunRow.of(run) for run in found.items], found.next)


@query.field("run")
async def one_run(_: Any, info: Info, id: str) -> RunRow:
    context = info.context
    context.must(Permission.RUNS_READ)
    return RunRow.of(await runs.get(context.ports, context.actor, id))


@agent.field("lastRun")
async def last_run(source: Agent, info: Info) -> RunRow | None:
    context = info.context
    context.must(Permission.RUNS_READ)
    if not can_see_agent(context.actor, source.record):
        raise NotFound(f"there is no agent {source.id}")
    found = await context.newest_runs.load(source.id)
    return RunRow.of(found) if found else None


@run_type.field("agent")
async def agent_of(source: RunRow, info: Info) -> Agent | None:
    context = info.context
    if source.agent_id is None:
        return None
    context.must(Permission.TENANT_READ)
    found = await context.agents.load(source.agent_id)
    return context.agent(found) if found else None


@run_type.field("files")
async def frozen_files(source: RunRow, info: Info, first: int, after: str) -> Page[File]:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    page = paged(await runs.manifest(context.ports, source.run), (), first, after)
    return replace(page, items=[replace(file, run=source.run) for file in page.items])


@run_type.field("file")
async def one_frozen_file(source: RunRow, info: Info, path: str) -> File:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    wanted = Path(path)
    seen: Workspace = await runs.manifest(context.ports, source.run)
    if wanted not in seen.files:
        raise NotFound(f"run {source.id} sees no {path}")
    return File.of(seen.files[wanted], (), source.run)


@frozen_file.field("content")
async def frozen_content(source: File, info: Info) -> str:
    context = info.context
    return text_of(source.path, await context.frozen(source))


@run_type.field("changes")
async def changes_since(source: RunRow, info: Info) -> list[RunChange]:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    return [RunChange.of(one) for one in await diff.diff(context.ports, source.run)]


@run_type.field("diff")
async def diff_since(source: RunRow, info: Info, path: str) -> str:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    _, text = await diff.difference(context.ports, source.run, Path(path))
    return text
