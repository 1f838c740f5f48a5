"""`carrel agents`: lists, creates, changes and deletes agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from carrel.cli.commands.records.agent_changes import change_many, duplicate_agent
from carrel.cli.commands.records.subcommands import RecordKind, add_delete, add_show
from carrel.cli.connection import run_on_server
from carrel.cli.console import server_options
from carrel.cli.names import AGENT, PERSON, TEMPLATE, find_person_id
from carrel.cli.option_values import parse_json_object
from carrel.cli.record_output import (
    changed_fields,
    given_fields,
    page_options,
    print_page,
    print_result,
)

if TYPE_CHECKING:
    from carrel_client import Agent, AsyncClient

Command = TypeVar("Command", bound=Callable[..., Any])
_COLUMNS: Final = ("slug", "name", "template", "human", "tags", "id")
_PEOPLE: Final = {"human": "human_pair_id", "owner": "owner_id"}


@click.group(invoke_without_command=True)
@server_options
@click.option("--template", type=TEMPLATE, help="Only agents of this template; none: without one.")
@click.option("--tag", help="Only agents with this tag.")
@click.option("--human", type=PERSON, help="Only agents of this person, by id or e-mail.")
@click.option("--search", "q", default="", help="Only agents with these words in name or slug.")
@page_options
@click.pass_context
def agents(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List agents; create, change and delete them.

    Without a subcommand, agents are listed: names, templates, people, tags.
    """
    if context.invoked_subcommand is not None:
        return
    filters = {name: options.pop(name) for name in ("template", "tag", "human", "q")}
    limit, after = options.pop("limit"), options.pop("after") or ""

    async def load(client: AsyncClient) -> tuple[Any, tuple[Agent, ...], dict[str, Any]]:
        if filters["human"]:
            filters["human"] = await find_person_id(client, filters["human"])
        page = None
        if limit:
            page = await client.agents.page(limit=limit, cursor=after, **filters)
        records = await client.agents.list(**filters) if page is None else page.items
        return page, records, {} if as_json else await _load_names(client)

    page, records, names = run_on_server(load, options, as_json=as_json)
    rows = [row.facts if as_json else _with_names(row, names) for row in records]
    print_page("agents", rows, _COLUMNS, as_json=as_json, page=page)


async def _load_names(client: AsyncClient) -> dict[str, str]:
    """Names of templates and people by id."""
    templates = {row.id: row.slug for row in await client.templates.list()}
    return templates | {row.id: row.name for row in await client.people.list()}


def _with_names(row: Agent, names: Mapping[str, str]) -> dict[str, Any]:
    template, human = names.get(row.template_id or ""), names.get(row.human_pair_id or "")
    return {**row.facts, "tags": list(row.tags), "template": template, "human": human}


def _agent_options(command: Command) -> Command:
    for option in (
        click.option("--config", metavar="JSON", callback=parse_json_object, help="Configuration."),
        click.option("--tag", "tags", multiple=True, help="Tag; may be repeated."),
        click.option("--shared/--private", "is_shared", default=None, help="Who may use it."),
        click.option("--owner", type=PERSON, help="Person whose items it shares."),
        click.option("--human", type=PERSON, help="Person that it works for, by id or e-mail."),
        click.option("--template", "template_id", type=TEMPLATE, help="Template, by id or slug."),
        click.option("--name", help="Name."),
    ):
        command = option(command)
    return command


@agents.command()
@click.argument("slug")
@_agent_options
@server_options
def create(slug: str, as_json: bool, **options: Any) -> None:
    """Create an agent and print its id.

    Its pinned files are pinned as they are now.
    """
    fields = given_fields(**_pop_fields(options))

    async def create_agent(client: AsyncClient) -> Agent:
        return await client.agents.create(slug, **await _with_person_ids(client, fields))

    agent = run_on_server(create_agent, options, as_json=as_json)
    print_result(agent.facts, agent.id, as_json=as_json)


@agents.command()
@click.argument("agent", type=AGENT)
@click.option("--slug", help="Slug.")
@_agent_options
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@server_options
def change(agent: str, slug: str | None, no_tags: bool, as_json: bool, **options: Any) -> None:
    """Change an agent. Files that are derived from its fields change with it.

    AGENT is an id or a slug. Only what is passed changes; an empty text removes the template, the
    human or the owner. Tags and configuration are replaced as a whole.
    """
    options_set = _pop_fields(options)
    if no_tags and options_set["tags"]:
        raise click.UsageError("expected --tag or --no-tags, not both")
    fields = changed_fields(
        slug=slug, **{**options_set, "tags": [] if no_tags else options_set["tags"]}
    )

    async def change_agent(client: AsyncClient) -> Agent:
        return await client.agents.change(agent, **await _with_person_ids(client, fields))

    changed = run_on_server(change_agent, options, as_json=as_json)
    print_result(changed.facts, f"{changed.slug}: changed", as_json=as_json)


def _pop_fields(options: dict[str, Any]) -> dict[str, Any]:
    names = ("name", "template_id", "human", "owner", "is_shared", "tags", "config")
    return {name: options.pop(name) for name in names}


async def _with_person_ids(client: AsyncClient, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as the client names them, with people by id."""
    result = {name: value for name, value in fields.items() if name not in _PEOPLE}
    for name in fields.keys() & _PEOPLE.keys():
        person = fields[name]
        result[_PEOPLE[name]] = person and await find_person_id(client, person)
    return result


_KIND: Final = RecordKind(
    "agents",
    "agent",
    AGENT,
    "an id or a slug",
    "Its files with history, memories, sessions, runs, items and keys are deleted too.",
)
add_show(agents, _KIND)
add_delete(agents, _KIND)
agents.add_command(change_many)
agents.add_command(duplicate_agent)
