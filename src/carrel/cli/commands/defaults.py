"""`carrel defaults`: compares tenants' default files with the packaged ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import EXIT_FAILED, print_json, run, store_options

if TYPE_CHECKING:
    from carrel.actions.overlay.default_files import DefaultsStatus

_STATE_LABELS = {
    "current": "up to date",
    "new": "added by the next update",
    "behind": "updated by the next update",
    "edited": "edited, kept",
    "deleted": "deleted, stays deleted",
    "retired": "no longer packaged",
}


@click.group()
def defaults() -> None:
    """Manage the files that every tenant starts with.

    Unedited files follow the packaged versions. Edited files are kept, and a newer packaged version
    is offered.
    """


def _tenant_option(command: Any) -> Any:
    return click.option("--tenant", help="Only this tenant, by its slug.")(command)


@defaults.command()
@store_options
@_tenant_option
def status(as_json: bool, tenant: str | None, **options: Any) -> None:
    """Compare every tenant's default files with the packaged ones."""
    statuses = run(lambda: _load_statuses(options, tenant), as_json=as_json)
    _print_statuses(statuses, as_json=as_json)


@defaults.command()
@store_options
@_tenant_option
@click.option(
    "--take", multiple=True, metavar="PATH", help="Replace this file with the offered version."
)
@click.option("--keep", multiple=True, metavar="PATH", help="Dismiss this update.")
def update(
    as_json: bool, tenant: str | None, take: Sequence[str], keep: Sequence[str], **options: Any
) -> None:
    """Update unedited default files to the packaged versions.

    A server does this on startup. With --take and --keep, decide about edited files; both need a
    --tenant.
    """
    if (take or keep) and tenant is None:
        raise click.UsageError("--take and --keep need a --tenant")
    statuses = run(lambda: _update(options, tenant, take, keep), as_json=as_json)
    _print_statuses(statuses, as_json=as_json)
    if any(isinstance(tenant_status, str) for tenant_status in statuses.values()):
        sys.exit(EXIT_FAILED)


async def _load_statuses(
    options: dict[str, Any], tenant: str | None
) -> dict[str, DefaultsStatus | str]:
    from carrel.actions.overlay import default_files  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.access import Actor  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(options) as store:
        tenant_ids = await default_files.list_tenant_ids(store.ports, tenant)
        actors = {slug: Actor(id, default_files.SERVER_AUTHOR) for slug, id in tenant_ids.items()}
        return {
            slug: await default_files.load_status(store.ports, actor)
            for slug, actor in actors.items()
        }


async def _update(
    options: dict[str, Any], tenant: str | None, take: Sequence[str], keep: Sequence[str]
) -> dict[str, DefaultsStatus | str]:
    from carrel.actions.overlay import default_files  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.access import Actor  # noqa: PLC0415 - as above
    from carrel.core.errors import Refusal  # noqa: PLC0415 - as above
    from carrel.core.identifiers import Path  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    after: dict[str, DefaultsStatus | str] = {}
    async with open_store(options) as store:
        for slug, id in (await default_files.list_tenant_ids(store.ports, tenant)).items():
            actor = Actor(id, default_files.SERVER_AUTHOR)
            try:
                paths = tuple(map(Path, take)), tuple(map(Path, keep))
                await default_files.update(store.ports, actor, *paths)
                after[slug] = await default_files.load_status(store.ports, actor)
            except Refusal as problem:
                after[slug] = str(problem)
    return after


def _print_statuses(statuses: dict[str, DefaultsStatus | str], *, as_json: bool) -> None:
    if as_json:
        print_json(
            {slug: _status_to_json(tenant_status) for slug, tenant_status in statuses.items()}
        )
        return
    for slug, tenant_status in statuses.items():
        if isinstance(tenant_status, str):
            click.echo(f"{slug}: {tenant_status}", err=True)
            continue
        click.echo(f"{slug}: version {tenant_status.seeded.version} of {tenant_status.packaged}")
        for path, state in tenant_status.plan.states.items():
            newer = "; update available" if path in tenant_status.plan.offers else ""
            click.echo(f"  {path.text:<24}{_STATE_LABELS[state]}{newer}")


def _status_to_json(tenant_status: DefaultsStatus | str) -> dict[str, Any]:
    if isinstance(tenant_status, str):
        return {"problem": tenant_status}
    offers = tenant_status.plan.offers
    files = [
        {"path": path.text, "state": state, "offered": path in offers}
        for path, state in tenant_status.plan.states.items()
    ]
    seeded = tenant_status.seeded.version
    return {"packaged": tenant_status.packaged, "seeded": seeded, "files": files}
