"""`carrel pins`: shows an agent's pinned files and available updates."""

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
def pins(agent: str, path: str | None, as_json: bool, **options: Any) -> None:
    """Show an agent's pinned files, or the update for one of them.

    AGENT is an id or a slug. With a PATH, shows the diff between the accepted version and the
    current one of its template or the defaults. To accept it, use carrel accept.
    """
    loaded = run_on_server(lambda client: load_pins(client, agent, path), options, as_json=as_json)
    if as_json:
        print_json({"agent": agent, "pins": [pin_to_json(pin) for pin in loaded]})
    elif path is None:
        headers = ("path", "state", "reviewed", "latest")
        formatting.print_table(headers, [_pin_row(pin) for pin in loaded])
    else:
        print_offer(loaded[0])


async def load_pins(client: AsyncClient, agent: str, path: str | None) -> tuple[Pin, ...]:
    """Load all pins of an agent, or the pin of one path. Raises NotFound."""
    from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

    agent_pins = await client.agent(agent).pins()
    if path is None:
        return agent_pins
    matches = tuple(pin for pin in agent_pins if pin.path == path)
    if not matches:
        raise NotFound(f"{path} is not a pinned file of {agent}")
    return matches


def _pin_row(pin: Pin) -> list[formatting.Cell]:
    reviewed, latest = (
        formatting.short_digest(pin.pinned_sha256),
        formatting.short_digest(pin.latest_sha256),
    )
    return [pin.path, _state_cell(pin), reviewed or "—", latest or "—"]


def _state_cell(pin: Pin) -> formatting.Cell:
    if pin.error:
        return (pin.error, "red")
    words = ["overridden"] if pin.overridden else []
    if pin.update_available:
        words.append("update available" if pin.pinned_sha256 else "never accepted")
    return (", ".join(words), "yellow") if words else ("up to date", "green")


def print_offer(pin: Pin) -> None:
    """Print the diff from the accepted to the offered version, and its digest."""
    if pin.error:
        click.echo(formatting.printable(f"{pin.path}: {pin.error}"), err=True)
        return
    if pin.overridden:
        click.echo(f"{pin.path} is overridden; accepting removes the override.", err=True)
    if not pin.update_available:
        click.echo(f"{pin.path}: no update available", err=True)
        return
    formatting.print_diff(offer_diff(pin))
    click.echo(f"offered: --sha256 {pin.latest_sha256}", err=True)


def offer_diff(pin: Pin) -> str:
    from carrel.core.files.diff import unified_diff  # noqa: PLC0415 - so that --help stays quick

    before, after = (None if text is None else text.encode() for text in (pin.pinned, pin.latest))
    return unified_diff(before, after, pin.path)


def pin_to_json(pin: Pin) -> dict[str, Any]:
    """Return a pin as the API encodes it."""
    wire_names = {
        "pinned_sha256": "pinnedSha256",
        "latest_sha256": "latestSha256",
        "update_available": "updateAvailable",
        "pinned": "pinnedContent",
        "latest": "latestContent",
    }
    facts = dataclasses.asdict(pin)
    if pin.error is None:
        del facts["error"]
    return {wire_names.get(name, name): fact for name, fact in facts.items()}
