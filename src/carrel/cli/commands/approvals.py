"""``carrel approvals``: the calls of agents that wait for somebody's yes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from carrel.cli.connection import connect
from carrel.cli.console import FAILED, print_json, run, server_options

_WIDEST = 100
_PATIENCE = 10
"""Seconds to wait for what comes of an answer."""
_COLOURS = {"requested": "yellow", "finished": "green", "denied": "red", "cancelled": "red"}
_STATUSES = ("requested", "approved", "running", "finished", "denied", "expired", "cancelled")
Command = TypeVar("Command", bound=Any)
Shown = Mapping[str, Any]


def answer_options(command: Command) -> Command:
    """Options of every command that answers one."""
    command = click.option(
        "--wait",
        type=click.IntRange(0, 25),
        default=_PATIENCE,
        show_default=True,
        help="Seconds to wait for what comes of it.",
    )(command)
    return click.option("--reason", default="", help="What the agent is told with it.")(command)


@click.group(invoke_without_command=True)
@server_options
@click.option("--status", type=click.Choice(_STATUSES), help="List those in this status.")
@click.option("--agent", help="Only those of this agent, by id or slug.")
@click.option("--watch", is_flag=True, help="Go on with those that come.")
@click.option(
    "--ask/--no-ask",
    default=None,
    help="Whether to ask what to answer to each; as it is on a terminal, if not said.",
)
@click.pass_context
def approvals(context: click.Context, /, **given: Any) -> None:
    """Show calls of agents that wait for a yes, and answer them.

    On a terminal each is shown with what it would do, to be approved, denied or skipped. Elsewhere,
    and with --json, they are listed. Exit code 0: done; 1: something could not be done.
    """
    context.obj = given
    if context.invoked_subcommand is not None:
        return
    asks = given.pop("ask")
    if asks is None:
        asks = sys.stdin.isatty() and sys.stdout.isatty() and not given["as_json"]
    status, watch = given.pop("status"), given.pop("watch")
    if status not in {None, "requested"} and (watch or asks):
        raise click.UsageError("only those that are requested can be answered or watched")
    failed = False
    for some in _batches(status or "requested", given.pop("agent"), watch, given):
        failed = _shown(some, asks, given, watch) or failed
    if failed:
        sys.exit(FAILED)


@approvals.command()
@click.argument("id")
@answer_options
@server_options
@click.pass_obj
def approve(before: dict[str, Any], /, id: str, **given: Any) -> None:
    """Approve the call ID, and say what came of it."""
    answer_one(id, True, _with_those(before, given))


@approvals.command()
@click.argument("id")
@answer_options
@server_options
@click.pass_obj
def deny(before: dict[str, Any], /, id: str, **given: Any) -> None:
    """Deny the call ID: it never runs, and the agent is told why."""
    answer_one(id, False, _with_those(before, given))


def _with_those(before: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What was said after the verb, and else what was said before it."""
    return {**given, **{n: given[n] or before[n] for n in ("as_json", "url", "token")}}


def answer_one(id: str, approved: bool, given: dict[str, Any]) -> None:
    """Answer, say what came of it, and exit with 1 where an approved call did not run."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    as_json, reason, wait = given.pop("as_json"), given.pop("reason"), given.pop("wait")
    found = run(
        lambda: _answer(id, approved, reason, wait, given), as_json=as_json, expects=(CarrelError,)
    )
    if as_json:
        print_json({"ok": not _failed(found, approved), "approval": found})
    else:
        _say_outcome(found)
    if _failed(found, approved):
        sys.exit(FAILED)


def _failed(found: Shown, approved: bool) -> bool:
    return approved and found["status"] == "cancelled"


async def _answer(
    id: str, approved: bool, reason: str, wait: int, given: Mapping[str, Any]
) -> dict[str, Any]:
    async with connect(given) as (desk, _):
        approval = await desk.approvals.answer(id, approved, reason)
        if approved and wait:
            approval = await desk.approvals.get(id, wait=wait)
        return dict(approval.facts)


def _batches(
    status: str, agent: str | None, watch: bool, given: dict[str, Any]
) -> Iterator[Sequence[Shown]]:
    """What there is; then, where one watches, what comes, as it comes."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    as_json, seen = given["as_json"], set[str]()
    server = {name: value for name, value in given.items() if name != "as_json"}
    while True:
        found = run(
            lambda: _new(status, agent, server, seen, watch),
            as_json=as_json,
            expects=(CarrelError,),
        )
        yield found
        if not watch:
            return
        seen.update(one["id"] for one in found)


async def _new(
    status: str, agent: str | None, server: Mapping[str, Any], seen: set[str], watch: bool
) -> Sequence[Shown]:
    """Those that were not seen; where one watches, as soon as there is one."""
    async with connect(server) as (desk, _):
        if not watch:
            return [one.facts for one in await desk.approvals.list(status=status, agent=agent)]
        async for _ in desk.events(types=["approval.requested"], include_connected=True):
            found = await desk.approvals.list(status=status, agent=agent)
            if new := [one.facts for one in found if one.id not in seen]:
                return new
        return []


def _shown(some: Sequence[Shown], asks: bool, given: dict[str, Any], watch: bool) -> bool:
    """Show these, and ask for answers; whether one of those could not be given."""
    if asks:
        return any([_asked(one, given) for one in some])
    if not given["as_json"]:
        for one in some:
            click.echo(_line(one))
        if not some:
            click.echo("nothing waits", err=True)
    elif watch:
        for one in some:
            print_json(one)
    else:
        print_json(list(some))
    return False


def _asked(one: Shown, given: dict[str, Any]) -> bool:
    """Show one, and answer it as one is told."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    click.echo(_line(one))
    where = [f"workspace {one['workspaceId']}"] if one["workspaceId"] else []
    where += [f"sandbox {one['sandboxId']}"] if one["sandboxId"] else []
    click.echo(f"  agent {one['agentId']}, {', '.join(where) or 'nowhere'}")
    for name, value in one["input"].items():
        for line in f"{name}: {value}".splitlines():
            click.echo(f"    {_plain(line)}")
    chosen = click.prompt(
        "approve, deny or skip", type=click.Choice(["a", "d", "s"]), default="s", err=True
    )
    if chosen == "s":
        return False
    reason = click.prompt("reason", default="", show_default=False, err=True)
    server = {name: value for name, value in given.items() if name != "as_json"}
    yes = chosen == "a"
    try:
        found = run(lambda: _answer(one["id"], yes, reason, _PATIENCE, server), as_json=False)
    except CarrelError as refused:
        click.ClickException(str(refused)).show()
        return True
    _say_outcome(found)
    return _failed(found, yes)


def _say_outcome(found: Shown) -> None:
    click.echo(f"{found['id']}  {_status(found['status'])}")
    if found["result"] is not None:
        for line in found["result"]["content"].splitlines():
            click.echo(f"  {_plain(line)}")


def _line(one: Shown) -> str:
    said = ", ".join(f"{name}={value}" for name, value in one["input"].items())
    flat = _plain(" ".join(f"{one['tool']} {said}".split()))
    cut = flat if len(flat) <= _WIDEST else flat[: _WIDEST - 1] + "…"
    return f"{one['id']}  {one['requestedAt'][:16]}  {_status(one['status'])}  {cut}"


def _status(status: str) -> str:
    return click.style(status, fg=_COLOURS.get(status))


def _plain(text: str) -> str:
    """Without what would make a terminal do something."""
    return "".join(one if one.isprintable() or one == "\t" else "\ufffd" for one in text)
