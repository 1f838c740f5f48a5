"""`carrel agents change-many` and `duplicate`, and `carrel templates duplicate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.names import AGENT, PERSON, TEMPLATE, find_person_id
from carrel.cli.record_output import confirm, given_fields, print_page, print_result, yes_option

if TYPE_CHECKING:
    from carrel_client import Agent, AgentOutcomes, AsyncClient, Template

_ERASED = ("sessions", "memories", "keys", "files")


@click.command("change-many")
@click.argument("names", metavar="[AGENT]...", nargs=-1, type=AGENT)
@click.option("--search", "q", help="Select agents with these words in name or slug.")
@click.option("--in-template", type=TEMPLATE, help="Select agents of this template; none: without.")
@click.option("--tagged", help="Select agents with this tag.")
@click.option("--of", type=PERSON, help="Select agents of this person, by id or e-mail.")
@click.option("--all", "is_all", is_flag=True, help="Select all agents.")
@click.option("--template", type=TEMPLATE, help="Move to this template; empty: to none.")
@click.option("--human", type=PERSON, help="Pair with this person; empty: with nobody.")
@click.option("--add-tag", "add_tags", multiple=True, help="Add a tag; may be repeated.")
@click.option("--remove-tag", "remove_tags", multiple=True, help="Remove a tag; may be repeated.")
@click.option("--delete", is_flag=True, help="Delete the agents and all that is theirs.")
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@yes_option
@server_options
def change_many(
    names: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool, **options: Any
) -> None:
    """Move, re-pair, tag or delete many agents.

    AGENT is an id or a slug; options select agents by the filters of the list instead. A failure
    for one agent stops no other; the exit code is then 1.
    """
    filter = _pop_filter(options)
    if bool(names) == (filter is not None):
        raise click.UsageError("select agents by name, or by options, or --all")
    change = _pop_change(options)
    if not change:
        raise click.UsageError("nothing to change")
    if not dry_run:
        confirm("Change the selected agents?", yes=yes, as_json=as_json)

    async def change_agents(client: AsyncClient) -> AgentOutcomes:
        person = change.get("human_pair_id")
        if person:
            change["human_pair_id"] = await find_person_id(client, person)
        if filter and "human" in filter:
            filter["human"] = await find_person_id(client, filter["human"])
        selected = list(names) or None
        return await client.agents.change_many(selected, filter=filter, dry_run=dry_run, **change)

    outcomes = run_on_server(change_agents, options, as_json=as_json)
    _print_outcomes(outcomes, as_json=as_json)
    if outcomes.failed:
        raise SystemExit(1)


def _pop_filter(options: dict[str, Any]) -> dict[str, str] | None:
    """Conditions of the list; None without an option that selects."""
    names = {"q": "q", "in_template": "template", "tagged": "tag", "of": "human"}
    values = {name: options.pop(option) for option, name in names.items()}
    conditions = {name: value for name, value in values.items() if value}
    return conditions if options.pop("is_all") or conditions else None


def _pop_change(options: dict[str, Any]) -> dict[str, Any]:
    options_set = given_fields(
        template_id=options.pop("template"), human_pair_id=options.pop("human")
    )
    fields: dict[str, Any] = {name: value or None for name, value in options_set.items()}
    tags = {name: list(options.pop(name)) for name in ("add_tags", "remove_tags")}
    fields |= {name: values for name, values in tags.items() if values}
    return fields | ({"delete": True} if options.pop("delete") else {})


def _print_outcomes(outcomes: AgentOutcomes, *, as_json: bool) -> None:
    if as_json:
        print_json(outcomes.facts)
        return
    rows = [
        {
            "agent": outcome.slug or outcome.agent_id,
            "result": outcome.error or ("changed" if outcome.changed else "unchanged"),
            "files": [f"{file.path}:{file.effect}" for file in outcome.files],
            "erased": [f"{outcome.erased[name]} {name}" for name in _ERASED if outcome.erased[name]]
            if outcome.erased
            else [],
        }
        for outcome in outcomes.results
    ]
    columns = ("agent", "result", "files", "erased") if outcomes.dry_run else ("agent", "result")
    print_page("agents", rows, columns, as_json=False)
    verb = "would change" if outcomes.dry_run else "changed"
    click.echo(f"{outcomes.changed} {verb}, {outcomes.failed} failed", err=True)


@click.command("duplicate")
@click.argument("agent", type=AGENT)
@click.argument("slug")
@click.option("--name", default="", help="Name; the slug if omitted.")
@server_options
def duplicate_agent(agent: str, slug: str, name: str, as_json: bool, **options: Any) -> None:
    """Create an agent with the own files, pins and settings of another one.

    Not duplicated: memories, notes, sessions, keys and items.
    """

    async def duplicate(client: AsyncClient) -> Agent:
        return await client.agents.duplicate(agent, slug, name)

    created = run_on_server(duplicate, options, as_json=as_json)
    print_result(created.facts, created.id, as_json=as_json)


@click.command("duplicate")
@click.argument("template", type=TEMPLATE)
@click.argument("slug")
@click.option("--name", default="", help="Name; the slug if omitted.")
@server_options
def duplicate_template(template: str, slug: str, name: str, as_json: bool, **options: Any) -> None:
    """Create a template with the files of another one. Its agents stay where they are."""

    async def duplicate(client: AsyncClient) -> Template:
        return await client.templates.duplicate(template, slug, name)

    created = run_on_server(duplicate, options, as_json=as_json)
    print_result(created.facts, created.id, as_json=as_json)
