"""``carrel pins``: how an agent stands to what is reviewed for it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient, Pin


@click.command()
@click.argument("agent")
@click.argument("path", required=False)
@server_options
def pins(agent: str, path: str | None, as_json: bool, **given: Any) -> None:
    """Show the pinned files of an agent, or what is offered for one.

    AGENT is an id or a slug. With a PATH, the difference between what was reviewed last and what
    its template or the defaults say now; carrel accept takes it over.
    """
    found = run_on_server(lambda desk: looked_at(desk, agent, path), given, as_json=as_json)
    if as_json:
        print_json({"agent": agent, "pins": [pin_told(pin) for pin in found]})
    elif path is None:
        heads = ("path", "state", "reviewed", "latest")
        formatting.table(heads, [_row(pin) for pin in found])
    else:
        show_offer(found[0])


async def looked_at(desk: AsyncClient, agent: str, path: str | None) -> tuple[Pin, ...]:
    """All pins of an agent, or that of a path. Raises NotFound."""
    from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

    found = await desk.agent(agent).pins()
    if path is None:
        return found
    chosen = tuple(pin for pin in found if pin.path == path)
    if not chosen:
        raise NotFound(f"{path} is not a pinned file of {agent}")
    return chosen


def _row(pin: Pin) -> list[formatting.Cell]:
    reviewed, latest = formatting.short(pin.pinned_sha256), formatting.short(pin.latest_sha256)
    return [pin.path, _state(pin), reviewed or "—", latest or "—"]


def _state(pin: Pin) -> formatting.Cell:
    if pin.error:
        return (pin.error, "red")
    words = ["overridden"] if pin.overridden else []
    if pin.update_available:
        words.append("update available" if pin.pinned_sha256 else "new, never reviewed")
    return (", ".join(words), "yellow") if words else ("as reviewed", "green")


def show_offer(pin: Pin) -> None:
    """What was reviewed against what is offered, and by which digest that is accepted."""
    if pin.error:
        click.echo(formatting.plain(f"{pin.path}: {pin.error}"), err=True)
        return
    if pin.overridden:
        click.echo(f"{pin.path} is overridden; accepting it drops the override.", err=True)
    if not pin.update_available:
        click.echo(f"{pin.path}: nothing newer is offered", err=True)
        return
    formatting.diff(offer(pin))
    click.echo(f"offered: --sha256 {pin.latest_sha256}", err=True)


def offer(pin: Pin) -> str:
    from carrel.core.files.diff import unified_diff  # noqa: PLC0415 - so that --help stays quick

    before, after = (None if text is None else text.encode() for text in (pin.pinned, pin.latest))
    return unified_diff(before, after, pin.path)


def pin_told(pin: Pin) -> dict[str, Any]:
    """A pin as the API tells of it."""
    renamed = {
        "pinned_sha256": "pinnedSha256",
        "latest_sha256": "latestSha256",
        "update_available": "updateAvailable",
        "pinned": "pinnedContent",
        "latest": "latestContent",
    }
    facts = dataclasses.asdict(pin)
    if pin.error is None:
        del facts["error"]
    return {renamed.get(name, name): fact for name, fact in facts.items()}
