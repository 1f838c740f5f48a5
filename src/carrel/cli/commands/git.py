"""`carrel git`: shows and rebuilds an agent's git repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import print_json, progress_bars, run, store_options
from carrel.core.hidden_characters import show_hidden_characters

if TYPE_CHECKING:
    from carrel.actions.git.history import GitHistory
    from carrel.actions.git.projection import ProjectionResult


@click.group()
def git() -> None:
    """An agent's history as a git repository.

    For agents whose config enables it. Servers update a repository on every clone and fetch.
    """


def _tenant_option(command: Any) -> Any:
    return click.option(
        "--tenant", help="Slug of the agent's tenant; the first tenant by default."
    )(command)


@git.command()
@click.argument("agent", metavar="AGENT")
@_tenant_option
@store_options
def rebuild(agent: str, as_json: bool, tenant: str | None, **options: Any) -> None:
    """Rebuild an agent's repository from the store.

    AGENT is an id or a slug. Every commit gets the same id as before. If one differs, the
    repository was tampered with, or a secret that a file contains was added to the vault.
    """
    result = run(lambda: _rebuild(options, tenant, agent), as_json=as_json)
    if as_json:
        print_json(
            {
                "ok": True,
                "commits": result.commits_added,
                "revision": result.revision,
                "oid": result.tip,
            }
        )
    else:
        click.echo(
            f"{agent}: {result.commits_added} commits, {result.tip or 'nothing written yet'}"
        )


@git.command()
@click.argument("agent", metavar="AGENT")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--diff", "include_diff", is_flag=True, help="Also show their combined diff.")
@_tenant_option
@store_options
def log(
    agent: str, as_json: bool, tenant: str | None, limit: int, include_diff: bool, **options: Any
) -> None:
    """Show an agent's newest commits."""
    git_history = run(lambda: _log(options, tenant, agent, limit, include_diff), as_json=as_json)
    if as_json:
        print_json(_history_to_json(git_history))
    else:
        _print_history(git_history)


async def _rebuild(options: dict[str, Any], tenant: str | None, agent: str) -> ProjectionResult:
    from carrel.actions.git import history  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options) as store:
        actor = await _operator(store.ports, tenant)
        with progress_bars() as on_progress:
            return await history.refresh(
                store.ports, actor, agent, rebuild=True, on_progress=on_progress
            )


async def _log(
    options: dict[str, Any], tenant: str | None, agent: str, limit: int, include_diff: bool
) -> GitHistory:
    from carrel.actions.git import history  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options) as store:
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


def _history_to_json(git_history: GitHistory) -> dict[str, Any]:
    commits = [
        {
            "oid": line.commit.id,
            "subject": line.commit.subject,
            "body": line.commit.body,
            "author": line.commit.author,
            "timestamp": line.commit.seconds,
            "checkpoint": line.checkpoint.note if line.checkpoint else None,
        }
        for line in git_history.commits
    ]
    return {"commits": commits, "diff": git_history.diff}


def _print_history(git_history: GitHistory) -> None:
    from datetime import UTC, datetime  # noqa: PLC0415 - so that --help stays quick

    for line in git_history.commits:
        time = datetime.fromtimestamp(line.commit.seconds, UTC).isoformat()[:19]
        author = line.commit.author.partition(" <")[0]
        suffix = f"  [{line.checkpoint.note}]" if line.checkpoint else ""
        click.echo(f"{line.commit.id[:7]}  {time}Z  {author}  {line.commit.subject}{suffix}")
    if git_history.diff:
        click.echo()
        click.echo(
            show_hidden_characters(git_history.diff),
            nl=False,
        )
