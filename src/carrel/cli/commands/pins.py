"""`carrel pins` and `merge`: an agent's pinned files, and updates merged into an override."""

from __future__ import annotations

import dataclasses
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import fail, print_json, server_options

if TYPE_CHECKING:
    from carrel_client import AsyncClient, MergeProposal, Pin


@click.command()
@click.argument("agent")
@click.argument("path", required=False)
@server_options
def pins(agent: str, path: str | None, as_json: bool, **options: Any) -> None:
    """Show an agent's pinned files, or the update for one of them.

    AGENT is an id or a slug. With a PATH, shows the diff between what the agent is served and
    the current version of its template or the defaults. To decide about it, use carrel accept,
    carrel decline or, for an override, carrel merge.
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
    if pin.declined:
        words.append("declined")
    if pin.update_available and pin.latest_sha256 is None:
        words.append("removal offered")
    elif pin.update_available:
        words.append("update available" if pin.pinned_sha256 else "never accepted")
    return (", ".join(words), "yellow") if words else ("up to date", "green")


def print_offer(pin: Pin) -> None:
    """Print the diff from what the agent is served to what is offered, and its digest."""
    if pin.error:
        click.echo(formatting.printable(f"{pin.path}: {pin.error}"), err=True)
        return
    if pin.overridden:
        click.echo(
            f"{pin.path} is overridden; accepting removes the override, carrel merge keeps it.",
            err=True,
        )
    if not pin.update_available:
        click.echo(f"{pin.path}: no update available", err=True)
        return
    formatting.print_diff(offer_diff(pin))
    click.echo(f"offered: --sha256 {pin.latest_sha256 or 'nothing'}", err=True)


def require_offer(pin: Pin) -> Pin:
    """Raises NotFound if no change is offered."""
    from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

    if not pin.update_available:
        raise NotFound(f"no update of {pin.path} is offered")
    return pin


def offer_diff(pin: Pin) -> str:
    from carrel.core.files.diff import unified_diff  # noqa: PLC0415 - so that --help stays quick

    served = pin.pinned if pin.served_sha256 is None else pin.served
    before, after = (None if text is None else text.encode() for text in (served, pin.latest))
    return unified_diff(before, after, pin.path)


def pin_to_json(pin: Pin) -> dict[str, Any]:
    """Return a pin as the API encodes it."""
    wire_names = {
        "pinned_sha256": "pinnedSha256",
        "latest_sha256": "latestSha256",
        "update_available": "updateAvailable",
        "pinned": "pinnedContent",
        "latest": "latestContent",
        "served": "servedContent",
        "served_sha256": "servedSha256",
    }
    facts = dataclasses.asdict(pin)
    if pin.error is None:
        del facts["error"]
    return {wire_names.get(name, name): fact for name, fact in facts.items()}


@click.command()
@click.argument("agent")
@click.argument("path")
@server_options
@click.option(
    "--print", "print_only", is_flag=True, help="Print the merge, with conflicts marked; save none."
)
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=FilePath),
    help="Save this text as the merged one.",
)
def merge(
    agent: str, path: str, as_json: bool, print_only: bool, file: FilePath | None, **options: Any
) -> None:
    """Merge an offered version into an agent's override.

    A three-way merge from the pinned version. On a terminal it opens in the editor before it is
    saved. The override becomes the merged text, and the offered version is pinned. Exit code 1:
    refused, or conflicts are left.
    """
    proposal = run_on_server(
        lambda client: client.agent(agent).propose_merge(path), options, as_json=as_json
    )
    if print_only:
        _print_proposal(proposal, as_json=as_json)
        return
    text = _edited(proposal, file, as_json=as_json)
    pin = run_on_server(
        lambda client: client.agent(agent).merge(path, proposal.sha256, text, proposal.if_match),
        options,
        as_json=as_json,
    )
    if as_json:
        print_json({"ok": True, **pin_to_json(pin)})
    else:
        click.echo(f"{agent}: {path}: merged")


def _print_proposal(proposal: MergeProposal, *, as_json: bool) -> None:
    if as_json:
        print_json(dict(proposal.facts))
        return
    click.echo(proposal.content, nl=False)
    if proposal.conflicts:
        click.echo(f"conflicts: {proposal.conflicts}", err=True)


def _edited(proposal: MergeProposal, file: FilePath | None, *, as_json: bool) -> str:
    """Text to save: of the file, or as edited on a terminal."""
    if file is not None:
        return file.read_text(encoding="utf-8")
    if as_json or not formatting.is_interactive():
        if proposal.conflicts:
            fail(f"{proposal.conflicts} conflicts: pass --file with the text", as_json=as_json)
        return proposal.content
    text = click.edit(proposal.content, extension=".md", require_save=proposal.conflicts > 0)
    if text is None and proposal.conflicts:
        fail("conflicts are left: nothing was saved", as_json=as_json)
    return proposal.content if text is None else text
