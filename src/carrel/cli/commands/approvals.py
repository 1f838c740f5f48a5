"""`carrel approvals`: lists and answers tool calls that need approval."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from carrel.cli.connection import connect
from carrel.cli.console import EXIT_FAILED, print_json, run, server_options
from carrel.cli.formatting import is_interactive, printable
from carrel.cli.names import AGENT
from carrel.cli.tool_results import describe_result, structured_result

_MAX_LINE_CHARS = 100
_DEFAULT_WAIT_SECONDS = 10
"""Time to wait for the result of an approved call."""
_COLOURS = {"requested": "yellow", "finished": "green", "denied": "red", "cancelled": "red"}
_STATUSES = ("requested", "approved", "running", "finished", "denied", "expired", "cancelled")
Command = TypeVar("Command", bound=Any)
ApprovalFacts = Mapping[str, Any]


def answer_options(command: Command) -> Command:
    """Add the options of commands that answer an approval."""
    command = click.option(
        "--wait",
        type=click.IntRange(0, 25),
        default=_DEFAULT_WAIT_SECONDS,
        show_default=True,
        help="Seconds to wait for the call's result.",
    )(command)
    return click.option("--reason", default="", help="Reason given to the agent.")(command)


@click.group(invoke_without_command=True)
@server_options
@click.option("--status", type=click.Choice(_STATUSES), help="List approvals with this status.")
@click.option("--agent", type=AGENT, help="Only approvals of this agent, by id or slug.")
@click.option("--watch", is_flag=True, help="Keep waiting for new approvals.")
@click.option(
    "--ask/--no-ask",
    default=None,
    help="Ask for an answer to each approval; by default only on a terminal.",
)
@click.pass_context
def approvals(context: click.Context, /, **options: Any) -> None:
    """Show tool calls that need approval, and answer them.

    On a terminal each call is shown with its arguments, to be approved, denied or skipped.
    Otherwise, and with --json, the calls are listed. Exit code 0: success; 1: an answer failed.
    """
    context.obj = options
    if context.invoked_subcommand is not None:
        return
    interactive = options.pop("ask")
    if interactive is None:
        interactive = sys.stdin.isatty() and sys.stdout.isatty() and not options["as_json"]
    status, watch = options.pop("status"), options.pop("watch")
    if status not in {None, "requested"} and (watch or interactive):
        raise click.UsageError("only approvals with status requested can be answered or watched")
    failed = False
    for batch in _batches(status or "requested", options.pop("agent"), watch, options):
        failed = _show_batch(batch, interactive, options, watch) or failed
    if failed:
        sys.exit(EXIT_FAILED)


@approvals.command()
@click.argument("id")
@server_options
@click.pass_obj
def show(group_options: dict[str, Any], /, id: str, **options: Any) -> None:
    """Show the call ID with all its arguments, and its result."""
    merged = _merge_options(group_options, options)
    as_json = merged.pop("as_json")
    approval = _get(id, merged, as_json=as_json)
    if as_json:
        print_json(approval)
    else:
        _print_call(approval)
        _print_result(approval["result"])


@approvals.command()
@click.argument("id")
@answer_options
@server_options
@click.pass_obj
def approve(group_options: dict[str, Any], /, id: str, **options: Any) -> None:
    """Approve the call ID and print its result.

    The call is printed first; on a terminal it has to be confirmed.
    """
    answer_approval(id, True, _merge_options(group_options, options))


@approvals.command()
@click.argument("id")
@answer_options
@server_options
@click.pass_obj
def deny(group_options: dict[str, Any], /, id: str, **options: Any) -> None:
    """Deny the call ID. It never runs, and the agent gets the reason."""
    answer_approval(id, False, _merge_options(group_options, options))


def _merge_options(group_options: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Merge options given after the subcommand over those given before it."""
    return {**options, **{n: options[n] or group_options[n] for n in ("as_json", "url", "token")}}


def answer_approval(id: str, approved: bool, options: dict[str, Any]) -> None:
    """Answer an approval and print the result.

    Exits with 1 if an approved call did not run.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    as_json, reason, wait = options.pop("as_json"), options.pop("reason"), options.pop("wait")
    if approved and not as_json:
        _show_and_confirm(_get(id, options, as_json=False))
    approval = run(
        lambda: _answer(id, approved, reason, wait, options),
        as_json=as_json,
        expected=(CarrelError,),
    )
    if as_json:
        print_json({"ok": not _was_not_run(approval, approved), "approval": approval})
    else:
        _print_outcome(approval)
    if _was_not_run(approval, approved):
        sys.exit(EXIT_FAILED)


def _show_and_confirm(approval: ApprovalFacts) -> None:
    """Show the call that is about to be approved; on a terminal ask once more."""
    if approval["status"] == "requested":
        _print_call(approval, err=True)
        if is_interactive():
            click.confirm("approve this call", abort=True, err=True)


def _get(id: str, options: dict[str, Any], *, as_json: bool) -> ApprovalFacts:
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def load() -> ApprovalFacts:
        async with connect(options) as (client, _):
            return dict((await client.approvals.get(id)).facts)

    return run(load, as_json=as_json, expected=(CarrelError,))


def _was_not_run(approval: ApprovalFacts, approved: bool) -> bool:
    return approved and approval["status"] == "cancelled"


async def _answer(
    id: str, approved: bool, reason: str, wait: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    async with connect(options) as (client, _):
        approval = await client.approvals.answer(id, approved, reason)
        if approved and wait:
            approval = await client.approvals.get(id, wait=wait)
        return dict(approval.facts)


def _batches(
    status: str, agent: str | None, watch: bool, options: dict[str, Any]
) -> Iterator[Sequence[ApprovalFacts]]:
    """Yield the current approvals; with `watch`, then new ones as they arrive."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    as_json, seen_ids = options["as_json"], set[str]()
    server = {name: value for name, value in options.items() if name != "as_json"}
    while True:
        batch = run(
            lambda: _wait_for_new(status, agent, server, seen_ids, watch),
            as_json=as_json,
            expected=(CarrelError,),
        )
        yield batch
        if not watch:
            return
        seen_ids.update(approval["id"] for approval in batch)


async def _wait_for_new(
    status: str, agent: str | None, server: Mapping[str, Any], seen_ids: set[str], watch: bool
) -> Sequence[ApprovalFacts]:
    """Return approvals not in `seen_ids`; with `watch`, wait until there is one."""
    async with connect(server) as (client, _):
        if not watch:
            return [
                approval.facts
                for approval in await client.approvals.list(status=status, agent=agent)
            ]
        async for _ in client.events(types=["approval.requested"], include_connected=True):
            pending = await client.approvals.list(status=status, agent=agent)
            if new := [approval.facts for approval in pending if approval.id not in seen_ids]:
                return new
        return []


def _show_batch(
    batch: Sequence[ApprovalFacts], interactive: bool, options: dict[str, Any], watch: bool
) -> bool:
    """Show approvals and, if interactive, ask for answers. Returns whether one failed."""
    if interactive:
        return any([_ask_and_answer(approval, options) for approval in batch])
    if not options["as_json"]:
        for approval in batch:
            click.echo(_summary_line(approval))
        if not batch:
            click.echo("no approvals", err=True)
    elif watch:
        for approval in batch:
            print_json(approval)
    else:
        print_json(list(batch))
    return False


def _ask_and_answer(approval: ApprovalFacts, options: dict[str, Any]) -> bool:
    """Show an approval, ask for the answer and send it. Returns whether that failed."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    _print_call(approval)
    choice = click.prompt(
        "approve, deny or skip", type=click.Choice(["a", "d", "s"]), default="s", err=True
    )
    if choice == "s":
        return False
    reason = click.prompt("reason", default="", show_default=False, err=True)
    server = {name: value for name, value in options.items() if name != "as_json"}
    approved = choice == "a"
    try:
        answered = run(
            lambda: _answer(approval["id"], approved, reason, _DEFAULT_WAIT_SECONDS, server),
            as_json=False,
        )
    except CarrelError as refused:
        click.ClickException(str(refused)).show()
        return True
    _print_outcome(answered)
    return _was_not_run(answered, approved)


def _print_call(approval: ApprovalFacts, *, err: bool = False) -> None:
    """Print a call with all its arguments."""
    from carrel.core.approvals import format_arguments  # noqa: PLC0415 - so that --help stays quick

    click.echo(_summary_line(approval), err=err)
    targets = [f"workspace {approval['workspaceId']}"] if approval["workspaceId"] else []
    targets += [f"sandbox {approval['sandboxId']}"] if approval["sandboxId"] else []
    target = ", ".join(targets) or "no workspace or sandbox"
    click.echo(f"  agent {approval['agentId']}, {target}", err=err)
    for line in format_arguments(approval["input"]).split("\n"):
        click.echo(f"    {line}", err=err)


def _print_outcome(approval: ApprovalFacts) -> None:
    click.echo(f"{approval['id']}  {_styled_status(approval['status'])}")
    _print_result(approval["result"])


def _print_result(result: ApprovalFacts | None) -> None:
    if result is not None:
        facts = describe_result(structured_result(result))
        for line in (*result["content"].splitlines(), *facts):
            click.echo(f"  {printable(line)}")


def _summary_line(approval: ApprovalFacts) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in approval["input"].items())
    flat = printable(" ".join(f"{approval['tool']} {arguments}".split()))
    cut = flat if len(flat) <= _MAX_LINE_CHARS else flat[: _MAX_LINE_CHARS - 1] + "…"
    status = _styled_status(approval["status"])
    return f"{approval['id']}  {approval['requestedAt'][:16]}  {status}  {cut}"


def _styled_status(status: str) -> str:
    return click.style(status, fg=_COLOURS.get(status))
