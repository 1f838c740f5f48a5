"""Resolvers for runs, their snapshot files and later changes."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType
from msgspec.structs import replace

from carrel.actions.runs import diff, runs, snapshots
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.overlay.compose import Workspace
from carrel.core.runs import RunStatus
from carrel.server.graphql.arguments import parse_cursor
from carrel.server.graphql.context import Info
from carrel.server.graphql.file_types import FileType, RunChangeType, RunType
from carrel.server.graphql.files import decode_text, files_page
from carrel.server.graphql.types import AgentType, PageType

query: Final = QueryType()
agent: Final = ObjectType("Agent")
run_type: Final = ObjectType("Run")
frozen_file: Final = ObjectType("FrozenFile")
frozen_file.set_alias("class", "file_class")
TYPES: Final = (query, agent, run_type, frozen_file)


@query.field("runs")
async def list_runs(
    _: Any, info: Info, first: int, after: str, **filters: Any
) -> PageType[RunType]:
    context = info.context
    context.require(Permission.RUNS_READ)
    status, start, end = (filters.get(name) for name in ("status", "from", "to"))
    page = await runs.list_runs(
        context.ports,
        context.actor,
        agent=filters.get("agent_id"),
        status=RunStatus(status) if status else None,
        start=start or 0,
        end=end,
        cursor=parse_cursor(after),
        limit=first,
    )
    return PageType([RunType.from_run(run) for run in page.items], page.next, page.total)


@query.field("run")
async def get_run(_: Any, info: Info, id: str) -> RunType:
    context = info.context
    context.require(Permission.RUNS_READ)
    return RunType.from_run(await runs.get(context.ports, context.actor, id))


@agent.field("lastRun")
async def last_run(source: AgentType, info: Info) -> RunType | None:
    context = info.context
    context.require(Permission.RUNS_READ)
    if not context.opens(source.record):
        return None
    run = await context.newest_runs.load(source.id)
    return RunType.from_run(run) if run else None


@run_type.field("agent")
async def load_agent(source: RunType, info: Info) -> AgentType | None:
    context = info.context
    if source.agent_id is None:
        return None
    context.require(Permission.TENANT_READ)
    record = await context.agents.load(source.agent_id)
    return context.agent_from_record(record) if record else None


@run_type.field("files")
async def list_run_files(source: RunType, info: Info, first: int, after: str) -> PageType[FileType]:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    page = files_page(await snapshots.load_manifest(context.ports, source.run), (), first, after)
    return replace(page, items=[replace(file, run=source.run) for file in page.items])


@run_type.field("file")
async def get_run_file(source: RunType, info: Info, path: str) -> FileType:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    requested = Path(path)
    snapshot: Workspace = await snapshots.load_manifest(context.ports, source.run)
    if requested not in snapshot.files:
        raise NotFound(f"run {source.id} has no file {path}")
    return FileType.from_file(snapshot.files[requested], (), source.run)


@frozen_file.field("content")
async def frozen_content(source: FileType, info: Info) -> str:
    context = info.context
    return decode_text(source.path, await context.read_run_file(source))


@run_type.field("changes")
async def changes_since(source: RunType, info: Info) -> list[RunChangeType]:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    return [
        RunChangeType.from_difference(difference)
        for difference in await diff.diff(context.ports, source.run)
    ]


@run_type.field("diff")
async def diff_since(source: RunType, info: Info, path: str) -> str:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    _, text = await diff.diff_file(context.ports, source.run, Path(path))
    return text
