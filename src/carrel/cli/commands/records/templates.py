"""`carrel templates`: lists, creates, changes and deletes templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.commands.records.agent_changes import duplicate_template
from carrel.cli.commands.records.subcommands import RecordKind, add_delete, add_show
from carrel.cli.connection import run_on_server
from carrel.cli.console import server_options
from carrel.cli.names import TEMPLATE
from carrel.cli.record_output import changed_fields, page_options, print_page, print_result

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Template


@click.group(invoke_without_command=True)
@server_options
@click.option("--search", "q", default="", help="Only those with these words in name or slug.")
@page_options
@click.pass_context
def templates(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List templates; create, change and delete them.

    Without a subcommand, templates are listed, with the number of their agents.
    """
    if context.invoked_subcommand is not None:
        return
    q, limit, after = options.pop("q"), options.pop("limit"), options.pop("after") or ""

    async def load(client: AsyncClient) -> tuple[Any, tuple[Template, ...]]:
        if limit is None:
            return None, await client.templates.list(q=q)
        page = await client.templates.page(limit=limit, cursor=after, q=q)
        return page, page.items

    page, records = run_on_server(load, options, as_json=as_json)
    rows = [row.facts if as_json else {**row.facts, "agents": row.agent_count} for row in records]
    print_page("templates", rows, ("slug", "name", "agents", "id"), as_json=as_json, page=page)


@templates.command()
@click.argument("slug")
@click.option("--name", default="", help="Name; the slug by default.")
@server_options
def create(slug: str, name: str, as_json: bool, **options: Any) -> None:
    """Create a template and print its id."""
    template = run_on_server(
        lambda client: client.templates.create(slug, name), options, as_json=as_json
    )
    print_result(template.facts, template.id, as_json=as_json)


@templates.command()
@click.argument("template", type=TEMPLATE)
@click.option("--slug", help="Slug.")
@click.option("--name", help="Name.")
@server_options
def change(
    template: str, slug: str | None, name: str | None, as_json: bool, **options: Any
) -> None:
    """Change slug or name of a template; its files and agents stay.

    TEMPLATE is an id or a slug.
    """
    fields = changed_fields(slug=slug, name=name)
    changed = run_on_server(
        lambda client: client.templates.change(template, **fields), options, as_json=as_json
    )
    print_result(changed.facts, f"{changed.slug}: changed", as_json=as_json)


_KIND: Final = RecordKind(
    "templates",
    "template",
    TEMPLATE,
    "an id or a slug",
    "Its files are deleted too; one that agents follow is refused.",
)
add_show(templates, _KIND)
add_delete(templates, _KIND)
templates.add_command(duplicate_template)
