"""`carrel tools`: lists an agent's tools and calls them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, print_json, server_options
from carrel.cli.formatting import print_content, print_table
from carrel.cli.names import AGENT
from carrel.cli.tool_results import describe_result, has_failed, structured_result

if TYPE_CHECKING:
    from carrel_client import AsyncClient

Facts = Mapping[str, Any]
_DEFAULT_WAIT_SECONDS: Final = 10


@click.command()
@click.argument("agent", type=AGENT)
@click.argument("tool", required=False)
@click.argument("arguments", metavar="[NAME=VALUE]…", nargs=-1)
@server_options
@click.option("--input", "file", type=click.File("r"), help="JSON file with arguments; - is stdin.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Audience of the call.")
@click.option("--session", "session_id", metavar="ID", help="Session that the call belongs to.")
@click.option("--run", "run_id", metavar="RUN", help="Run that the call belongs to.")
@click.option("--call-id", help="Idempotency id: a repeated id returns the first result.")
@click.option(
    "--wait",
    type=click.IntRange(0, 25),
    default=_DEFAULT_WAIT_SECONDS,
    show_default=True,
    help="Seconds to wait for the result of a call that needs approval.",
)
def tools(
    agent: str,
    tool: str | None,
    arguments: tuple[str, ...],
    as_json: bool,
    file: TextIO | None,
    wait: int,
    **options: Any,
) -> None:
    """List the tools of AGENT, or call a TOOL.

    NAME=VALUE is an argument with a text, NAME:=VALUE one with a number or other JSON. The result
    is printed as the agent gets it; what else is known of it, such as exit code, duration and
    changed files with their versions, goes to stderr. Exit code 1: an error, a command that failed,
    or a call that still waits for approval.
    """
    names = ("scope", "session_id", "run_id", "call_id")
    call_options = {name: options.pop(name) for name in names}
    if tool is None:
        definitions = run_on_server(
            lambda client: client.agent(agent).tools.describe(), options, as_json=as_json
        )
        print_json(definitions) if as_json else _print_definitions(definitions)
        return
    values = _parse_arguments(file, arguments)

    async def call(client: AsyncClient) -> Facts:
        reply = await client.agent(agent).tools.call(tool, values, **call_options)
        approval = reply.approval
        if approval is not None and wait:
            approval = await client.approvals.get(approval.id, wait=wait)
        if approval is None:
            facts = {"content": reply.content, "isError": reply.is_error}
            return facts if reply.structured is None else {**facts, "structured": reply.structured}
        return approval.facts["result"] or {"approval": approval.facts}

    reply = run_on_server(call, options, as_json=as_json)
    print_json(reply) if as_json else _print_reply(reply)
    if "approval" in reply or reply["isError"] or has_failed(structured_result(reply)):
        sys.exit(EXIT_FAILED)


def _parse_arguments(file: TextIO | None, words: Sequence[str]) -> dict[str, Any]:
    """Arguments of a file, replaced by those of the command line."""
    try:
        values = {} if file is None else json.load(file)
    except ValueError as error:
        raise click.UsageError(f"--input is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise click.UsageError("--input is not a JSON object")
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.removesuffix(":"):
            raise click.UsageError(f"{word!a} is not NAME=VALUE or NAME:=JSON")
        values[name.removesuffix(":")] = _parse_json(word, text) if name.endswith(":") else text
    return values


def _parse_json(word: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise click.UsageError(f"the value of {word!a} is not JSON") from None


def _print_definitions(definitions: Sequence[Facts]) -> None:
    rows = [
        (
            definition["name"],
            ", ".join(definition["inputSchema"]["required"]),
            definition["description"].partition(". ")[0].removesuffix("."),
        )
        for definition in definitions
    ]
    print_table(("tool", "required", "does"), rows)


def _print_reply(reply: Facts) -> None:
    if "approval" in reply:
        click.echo(
            f"waiting for a person to approve this call: {reply['approval']['id']}", err=True
        )
        return
    content = reply["content"]
    print_content(content if not content or content.endswith("\n") else f"{content}\n")
    for line in describe_result(structured_result(reply)):
        click.echo(line, err=True)
