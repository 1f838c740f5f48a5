"""``carrel defaults``: how tenants' default files stand to the packaged ones, and updating them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from carrel.cli.console import FAILED, print_json, run, store_options

if TYPE_CHECKING:
    from carrel.actions.overlay.default_files import DefaultsStatus

_SAYS = {
    "current": "as packaged",
    "new": "comes with the next update",
    "behind": "follows with the next update",
    "edited": "edited here, kept",
    "deleted": "deleted here, stays so",
    "retired": "packaged no more",
}


@click.group()
def defaults() -> None:
    """The files that every tenant starts with.

    Files that nobody has edited follow the packaged ones; edited ones are kept, and what is newer
    is offered.
    """


def _tenant_option(command: Any) -> Any:
    return click.option("--tenant", help="Only this tenant, by its slug.")(command)


@defaults.command()
@store_options
@_tenant_option
def status(as_json: bool, tenant: str | None, **given: Any) -> None:
    """Say how every tenant's files stand to the packaged ones."""
    found = run(lambda: _look(given, tenant), as_json=as_json)
    _tell(found, as_json=as_json)


@defaults.command()
@store_options
@_tenant_option
@click.option("--take", multiple=True, metavar="PATH", help="Replace ours by what is offered.")
@click.option("--keep", multiple=True, metavar="PATH", help="Be offered this version no more.")
def update(
    as_json: bool, tenant: str | None, take: Sequence[str], keep: Sequence[str], **given: Any
) -> None:
    """Let the files follow that nobody has edited.

    A server does this by itself when it starts. With --take and --keep, say what becomes of the
    edited ones; these need a --tenant.
    """
    if (take or keep) and tenant is None:
        raise click.UsageError("--take and --keep need a --tenant")
    found = run(lambda: _update(given, tenant, take, keep), as_json=as_json)
    _tell(found, as_json=as_json)
    if any(isinstance(standing, str) for standing in found.values()):
        sys.exit(FAILED)


async def _look(given: dict[str, Any], tenant: str | None) -> dict[str, DefaultsStatus | str]:
    from carrel.actions.overlay import default_files  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.access import Actor  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    async with open_store(given) as store:
        chosen = await default_files.list_tenant_ids(store.ports, tenant)
        actors = {slug: Actor(id, default_files.SERVER_AUTHOR) for slug, id in chosen.items()}
        return {
            slug: await default_files.load_status(store.ports, who) for slug, who in actors.items()
        }


async def _update(
    given: dict[str, Any], tenant: str | None, take: Sequence[str], keep: Sequence[str]
) -> dict[str, DefaultsStatus | str]:
    from carrel.actions.overlay import default_files  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.access import Actor  # noqa: PLC0415 - as above
    from carrel.core.errors import Refusal  # noqa: PLC0415 - as above
    from carrel.core.identifiers import Path  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import open_store  # noqa: PLC0415 - as above

    after: dict[str, DefaultsStatus | str] = {}
    async with open_store(given) as store:
        for slug, id in (await default_files.list_tenant_ids(store.ports, tenant)).items():
            actor = Actor(id, default_files.SERVER_AUTHOR)
            try:
                chosen = tuple(map(Path, take)), tuple(map(Path, keep))
                await default_files.update(store.ports, actor, *chosen)
                after[slug] = await default_files.load_status(store.ports, actor)
            except Refusal as problem:
                after[slug] = str(problem)
    return after


def _tell(found: dict[str, DefaultsStatus | str], *, as_json: bool) -> None:
    if as_json:
        print_json({slug: _told(standing) for slug, standing in found.items()})
        return
    for slug, standing in found.items():
        if isinstance(standing, str):
            click.echo(f"{slug}: {standing}", err=True)
            continue
        click.echo(f"{slug}: version {standing.seeded.version} of {standing.packaged}")
        for path, state in standing.plan.states.items():
            newer = "; newer is offered" if path in standing.plan.offers else ""
            click.echo(f"  {path.text:<24}{_SAYS[state]}{newer}")


def _told(standing: DefaultsStatus | str) -> dict[str, Any]:
    if isinstance(standing, str):
        return {"problem": standing}
    offers = standing.plan.offers
    files = [
        {"path": path.text, "state": state, "offered": path in offers}
        for path, state in standing.plan.states.items()
    ]
    seeded = standing.seeded.version
    return {"packaged": standing.packaged, "seeded": seeded, "files": files}
