"""``carrel git``: an agent's history as a git repository, looked at and made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import print_json, progress_bars, run, store_options

if TYPE_CHECKING:
    from carrel.actions.git.history import GitHistory
    from carrel.actions.git.projection import ProjectionResult


@click.group()
def git() -> None:
    """An agent's history as a git repository.

    For agents whose config enables it. Servers bring a repository up to date by themselves
    whenever somebody clones or fetches it.
    """


def _tenant_option(command: Any) -> Any:
    return click.option("--tenant", help="The agent's tenant, by its slug; the first by default.")(
        command
    )


@git.command()
@click.argument("agent", metavar="AGENT")
@_tenant_option
@store_options
def rebuild(agent: str, as_json: bool, tenant: str | None, **given: Any) -> None:
    """Make an agent's repository again from what is stored.

    AGENT is an id or a slug. Every commit gets the id that it had: where one differs, somebody
    has changed the repository, or a secret has come into the vault that stood in a file.
    """
    done = run(lambda: _rebuild(given, tenant, agent), as_json=as_json)
    if as_json:
        print_json(
            {"ok": True, "commits": done.commits_added, "revision": done.revision, "oid": done.tip}
        )
    else:
        click.echo(f"{agent}: {done.commits_added} commits, {done.tip or 'nothing written yet'}")


@git.command()
@click.argument("agent", metavar="AGENT")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--diff", "include_diff", is_flag=True, help="And what they changed together.")
@_tenant_option
@store_options
def log(
    agent: str, as_json: bool, tenant: str | None, limit: int, include_diff: bool, **given: Any
) -> None:
    """Show an agent's newest commits: who, when and why."""
    found = run(lambda: _log(given, tenant, agent, limit, include_diff), as_json=as_json)
    if as_json:
        print_json(_told(found))
    else:
        _say(found)


async def _rebuild(given: dict[str, Any], tenant: str | None, agent: str) -> ProjectionResult:
    from carrel.actions.git import history  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        actor = await _operator(store.ports, tenant)
        with progress_bars() as watch:
            return await history.refresh(store.ports, actor, agent, rebuild=True, on_progress=watch)


async def _log(
    given: dict[str, Any], tenant: str | None, agent: str, limit: int, include_diff: bool
) -> GitHistory:
    from carrel.actions.git import history  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        actor = await _operator(store.ports, tenant)
        return await history.load_history(
            store.ports, actor, agent, limit=limit, include_diff=include_diff
        )


async def _operator(ports: Any, tenant: str | None) -> Any:
    from carrel.actions.accounts import tenants  # noqa: PLC0415 - so that --help stays quick
    from carrel.actions.overlay import default_files  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.access import Actor  # noqa: PLC0415 - as above

    slug = tenant or tenants.DEFAULT_TENANT_SLUG
    return Actor(
        (await default_files.list_tenant_ids(ports, slug))[slug], default_files.SERVER_AUTHOR
    )


def _told(found: GitHistory) -> dict[str, Any]:
    commits = [
        {
            "oid": line.commit.id,
            "subject": line.commit.subject,
            "body": line.commit.body,
            "author": line.commit.author,
            "timestamp": line.commit.seconds,
            "checkpoint": line.checkpoint.note if line.checkpoint else None,
        }
        for line in found.commits
    ]
    return {"commits": commits, "diff": found.diff}


def _say(found: GitHistory) -> None:
    from datetime import UTC, datetime  # noqa: PLC0415 - so that --help stays quick

    for line in found.commits:
        when = datetime.fromtimestamp(line.commit.seconds, UTC).isoformat()[:19]
        who = line.commit.author.partition(" <")[0]
        mark = f"  [{line.checkpoint.note}]" if line.checkpoint else ""
        click.echo(f"{line.commit.id[:7]}  {when}Z  {who}  {line.commit.subject}{mark}")
    if found.diff:
        click.echo()
        click.echo(
            "".join(c if c.isprintable() or c in "\n\t" else "�" for c in found.diff), nl=False
        )
