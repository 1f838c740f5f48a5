"""`carrel rollback` and `reviews`: past reviews of pinned files, and their reversal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.commands.accept import parse_digest_option
from carrel.cli.commands.pins import pin_to_json
from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Review

_DECISIONS: Final = ("accepted", "declined", "merged", "rolled-back")


@click.command()
@click.argument("names", nargs=-1, metavar="[AGENT] PATH")
@server_options
@click.option(
    "--version", type=click.IntRange(1), help="Version in the agent's own history of the file."
)
@click.option("--template", help="Roll back every agent of this template; omit AGENT.")
@click.option("--defaults", is_flag=True, help="Roll back all that inherit it; omit AGENT.")
@click.option("--sha256", metavar="DIGEST", help="Digest that was accepted for all.")
@click.option("--review", metavar="ID", help="Roll back this review, of carrel reviews.")
def rollback(names: Sequence[str], as_json: bool, **options: Any) -> None:
    """Revert the acceptance of a pinned file.

    The agent's pin returns to the previously accepted version. AGENT is an id or a slug. With
    --template or --defaults, what was accepted for all is rolled back together; an agent whose pin
    has moved since is not changed. With --review, every agent that the review changed gets back
    what it had before, its override included. Exit code 1: refused, also for one agent of many. For
    other files, use carrel put --from-version.
    """
    if review := options.pop("review"):
        conflicting = [
            name for name in ("version", "sha256", "template", "defaults") if options.pop(name)
        ]
        if names or conflicting:
            raise click.UsageError("--review needs nothing else")
        _roll_back_review(review, options, as_json=as_json)
        return
    version, sha256 = options.pop("version"), options.pop("sha256")
    template, defaults = options.pop("template"), options.pop("defaults")
    if template and defaults:
        raise click.UsageError("expected --template or --defaults, not both")
    for_all = bool(template or defaults)
    if len(names) != (1 if for_all else 2):
        raise click.UsageError("expected AGENT and PATH, or --template or --defaults and PATH")
    if for_all != (sha256 is not None) or (for_all and version is not None):
        raise click.UsageError("--template and --defaults need --sha256; --version needs AGENT")
    if for_all:
        _roll_back_all(names[0], template, parse_digest_option(sha256), options, as_json=as_json)
    else:
        _roll_back_one(names[0], names[1], version, options, as_json=as_json)


def _roll_back_one(
    agent: str, path: str, version: int | None, options: Mapping[str, Any], *, as_json: bool
) -> None:
    pin = run_on_server(
        lambda client: client.agent(agent).roll_back(path, version), options, as_json=as_json
    )
    if as_json:
        print_json({"ok": True, **pin_to_json(pin)})
    else:
        click.echo(f"{agent}: {path} is back at {formatting.short_digest(pin.pinned_sha256)}")


def _roll_back_all(
    path: str, template: str | None, digest: str, options: Mapping[str, Any], *, as_json: bool
) -> None:
    from carrel.cli.commands.bulk_review import roll_back_for_all  # noqa: PLC0415 - so that --help stays quick

    rows = run_on_server(
        lambda client: roll_back_for_all(client, template, path, digest), options, as_json=as_json
    )
    _print_rows(f"{path}: no agent has accepted it", rows, as_json=as_json)


def _roll_back_review(review: str, options: Mapping[str, Any], *, as_json: bool) -> None:
    from carrel.cli.commands.bulk_review import review_rows  # noqa: PLC0415 - so that --help stays quick

    async def send(client: AsyncClient) -> list[dict[str, Any]]:
        result = await client.reviews.roll_back(review)
        return await review_rows(client, None, result.outcomes)

    rows = run_on_server(send, options, as_json=as_json)
    _print_rows("no agent was changed by it", rows, as_json=as_json)


def _print_rows(nothing: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    failed = [row for row in rows if not row["success"]]
    if as_json:
        counts = {"rolledBack": len(rows) - len(failed), "failed": len(failed)}
        print_json({"ok": not failed, **counts, "results": list(rows)})
    elif not rows:
        click.echo(nothing)
    else:
        for row in rows:
            click.echo(formatting.printable(f"{row['agent']}: {_result_text(row)}"))
    if failed:
        sys.exit(EXIT_FAILED)


def _result_text(row: Mapping[str, Any]) -> str:
    if not row["success"]:
        return f"not rolled back: {row['error']}"
    return "rolled back" if row["changed"] else "already rolled back"


@click.command()
@server_options
@click.option("--agent", help="Only of this agent.")
@click.option("--template", help="Only of the agents of this template.")
@click.option("--decision", type=click.Choice(_DECISIONS), help="Only with this decision.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--after", default="", metavar="CURSOR", help="`next` of the page before.")
def reviews(
    as_json: bool,
    agent: str | None,
    template: str | None,
    decision: str | None,
    limit: int,
    after: str,
    **options: Any,
) -> None:
    """List past reviews of pinned files, newest first.

    To take one back, use carrel rollback --review ID.
    """
    page = run_on_server(
        lambda client: client.reviews.list(
            agent=agent, template=template, decision=decision, cursor=after, limit=limit
        ),
        options,
        as_json=as_json,
    )
    if as_json:
        print_json(dict(page.facts))
        return
    headers = ("review", "time", "decision", "path", "for", "agents", "reason")
    formatting.print_table(headers, [_row(review) for review in page.items])
    if page.next:
        click.echo(f"{len(page.items)} of {page.total}; next: --after {page.next}", err=True)


def _row(review: Review) -> list[formatting.Cell]:
    subject = review.agent_slug or review.agent or review.template_name or "defaults"
    part = f" ({review.part})" if review.part else ""
    decision = f"{review.decision}, rolled back" if review.rolled_back_by else review.decision
    time = review.at.strftime("%Y-%m-%d %H:%M")
    changed = str(review.changed)
    return [review.id, time, decision, review.path, f"{subject}{part}", changed, review.reason]
