"""Writes docs/reference anew from the code: `make docs`. A test fails when a page has drifted."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import Any, Final

import click
import msgspec

from carrel.cli import main as command_line
from carrel.server.graphql import SCHEMA_TEXT
from carrel.server.graphql.errors import CODES
from carrel.server.graphql.query_cost import LIMITS
from carrel.server.http.api_docs import documentation_endpoints
from carrel.server.http.endpoint import Endpoint
from carrel.server.http.metrics import Metrics
from carrel.server.http.openapi import build_document
from carrel.server.http.problems import CORRUPT, METHOD_NOT_ALLOWED, REFUSAL_STATUS
from carrel.settings import PREFIX, Settings
from carrel.tools import ALL
from carrel.tools.tool import Tool
from carrel.wiring.ports import open_ports
from carrel.wiring.server_app import endpoints
from carrel.wiring.store_metrics import observe_store

REFERENCE: Final = File(__file__).parent / "reference"
Json = dict[str, Any]


def page(title: str, about: str, *parts: str) -> str:
    made = "<!-- Made by `make docs`; change the code instead. -->"
    return "\n\n".join([f"# {title}", made, about, *parts]) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in line)} |" for line in lines)


def cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def refusals() -> str:
    """Every way of saying no, by status."""
    about = (
        "Every way in which Carrel says no. The answer is "
        '`{"error": code, "message": …, "details": {…}}` with this status; the message is for '
        "people and may change, the code is for programs and stays."
    )
    by_status = sorted(REFUSAL_STATUS.items(), key=lambda item: (item[1], item[0].code))
    rows = [(status, f"`{kind.code}`", kind.__doc__) for kind, status in by_status]
    rows += [
        (
            *_coded(METHOD_NOT_ALLOWED),
            "There is such an address, and this method is none of its own.",
        ),
        (*_coded(CORRUPT), "Stored bytes are gone or damaged. They are never served."),
    ]
    return page("Refusals", about, table(["status", "code", "meaning"], rows))


def _coded(problem: tuple[int, str]) -> tuple[int, str]:
    status, code = problem
    return status, f"`{code}`"


def settings() -> str:
    """Every setting, in the order in which they are declared."""
    about = (
        "Each setting comes from the environment (`CARREL_…`), else from a file `carrel.toml` in "
        "the directory where Carrel is started (the name in lower case, without the prefix; "
        "`CARREL_CONFIG` names another file), else it is as here. Options of a command go before "
        "all of them. [In a Python program](../guide/build/python.md) they are arguments of "
        "`carrel.open`."
    )
    _, known = msgspec.json.schema_components([Settings])
    rows = [
        (f"`{PREFIX}{name.upper()}`", _kind(field), _default(field), field["description"])
        for name, field in known["Settings"]["properties"].items()
    ]
    return page("Settings", about, table(["variable", "type", "default", "meaning"], rows))


def _kind(field: Json) -> str:
    lowest, highest = field.get("minimum"), field.get("maximum")
    if highest is not None:
        return f"{field['type']}, {lowest} to {highest}"
    return field["type"] if lowest is None else f"{field['type']}, at least {lowest}"


def _default(field: Json) -> str:
    value = field["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else ""


def rest() -> str:
    """Every endpoint, by what it is about."""
    about = (
        "Every address that a server answers to; the same, with every field, is at `/docs` and "
        "`/openapi.json` of a running one. Beside the statuses that are told here, any may be "
        "answered with 500, or with 431 where its headers are too large, and one that takes a body "
        "with 408. What is refused comes as "
        "[a refusal](refusals.md). A path of a file may have its slashes percent-encoded or not. "
        "The addresses under *Conformance* are there only with `CARREL_TEST_SEAM`."
    )
    needs = (
        "**What a credential needs.** A key may be narrowed to some of these permissions "
        "(`scopes`). Without, it carries all that its holder may do: owners and admins "
        "everything, members everything but `tenant:admin`, agents neither of those that begin "
        "with `tenant`; a service has them only if they are named. Writing does not imply reading."
    )
    told = list(endpoints(Settings(test_seam=True)))
    told.append(Metrics().endpoint())
    told += documentation_endpoints(told, "Carrel", "")
    paths = build_document(told, "Carrel", "")["paths"]
    by_tag: dict[str, list[Endpoint]] = {}
    for endpoint in told:
        by_tag.setdefault(endpoint.tag, []).append(endpoint)
    return page("REST", about, needs, *(_family(tag, some, paths) for tag, some in by_tag.items()))


def _family(tag: str, some: Iterable[Endpoint], paths: Json) -> str:
    rows = [
        (
            f"`{one.method} {one.path.replace('...', '')}`",
            one.summary,
            _needs(one),
            _statuses(paths[one.path.replace("...", "")][one.method.lower()]),
        )
        for one in some
    ]
    return f"## {tag}\n\n" + table(["endpoint", "what it does", "needs", "statuses"], rows)


def _needs(endpoint: Endpoint) -> str:
    if endpoint.public:
        return "nothing"
    if endpoint.platform:
        return "the platform's token"
    return f"`{endpoint.permission}`" if endpoint.permission else "a credential"


def _statuses(operation: Json) -> str:
    return " ".join(status for status in operation["responses"] if status not in {"408", "500"})


def commands() -> str:
    """Every command with its options."""
    about = (
        "What `carrel` can be told at a terminal. Exit codes: 0, all is well; 1, something is "
        "wrong or could not be done; 2, it was called in a way that it does not know."
    )
    return page("Commands", about, *(_command(name, each) for name, each in _each(command_line)))


def _each(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command of a group by its full name, those of groups within it included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from _each(command, f"{before}{name} ")


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"carrel {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    said = [" ".join(each.split()) for each in (command.help or "").split("\n\n")]
    parts = [f"## carrel {name}", f"```\n{usage}\n```", *said]
    options = [each for each in command.params if isinstance(each, click.Option)]
    rows = [(_option(each), each.help or "") for each in options]
    return "\n\n".join([*parts, table(["option", "meaning"], rows)] if rows else parts)


def _option(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.make_metavar(click.Context(command_line))}"
    return f"`{', '.join(option.opts)}{value}`"


def metrics() -> str:
    """Every metric that a server of its own has."""
    about = (
        "What `GET /metrics` tells Prometheus; with several workers the numbers are those of all "
        "together. The usual `process_…` metrics come with a single worker."
    )
    rows = [(f"`{name}`", kind, said) for name, kind, said in _told(asyncio.run(_rendered()))]
    return page("Metrics", about, table(["metric", "type", "meaning"], rows))


async def _rendered() -> str:
    numbers = Metrics()
    with tempfile.TemporaryDirectory() as directory:
        async with open_ports(Settings(data=directory)) as opened:
            observe_store(numbers, opened)
            numbers.add_route("/", "GET").observe(200, 0.001)
            return numbers.render().decode()


def _told(text: str) -> Iterator[tuple[str, str, str]]:
    kinds = dict(re.findall(r"^# TYPE (carrel_\w+) (\w+)$", text, re.MULTILINE))
    for name, said in re.findall(r"^# HELP (carrel_\w+) (.*)$", text, re.MULTILINE):
        if not name.endswith("_created"):
            yield name, kinds[name], said


def graphql() -> str:
    """The schema, and what errors and limits there are."""
    about = (
        "What `POST /graphql` answers to; [the guide](../guide/extend/graphql.md) shows how. The "
        "same text is at `/graphql/schema` of a running server."
    )
    by_code: dict[str, list[str]] = {}
    for kind, code in CODES.items():
        by_code.setdefault(code, []).append(f"`{kind.code}`")
    by_code.setdefault("INTERNAL_SERVER_ERROR", []).append("what nobody foresaw")
    rows = [(f"`{code}`", ", ".join(kinds)) for code, kinds in by_code.items()]
    codes = "## Codes\n\n" + table(["`extensions.code`", "`extensions.reason`"], rows)
    most = [
        ("depth", LIMITS.depth, "fields within one another"),
        ("cost", LIMITS.cost, "fields, each as often as the lists around it may have items"),
        ("document", LIMITS.characters, "bytes of the text"),
        ("tokens", LIMITS.tokens, "words and signs of the text, and comments"),
        ("first", LIMITS.first, "items of a page"),
        ("bytes", LIMITS.bytes, "of all contents in one answer; what is beyond is left out"),
    ]
    limits = "## Limits\n\n" + table(["`extensions.limit`", "most", "of what"], most)
    schema = f"## Schema\n\n```graphql\n{SCHEMA_TEXT}```"
    return page("GraphQL", about, codes, limits, schema)


def tools() -> str:
    """What an agent can do, and what a model has to say for it."""
    about = (
        "What an agent can do when a model asks for it: `POST /v1/agents/{id}/tools/{name}`, "
        "`GET /v1/agents/{id}/tools?dialect=mcp|openai|anthropic` for their descriptions. Of an "
        "agent's tools its `allowedTools` leave some; a private one answers in a shared session "
        "that it is not available there."
    )
    return page("Tools", about, *(_tool(tool) for tool in ALL))


def _tool(tool: Tool) -> str:
    kind = [word for word, so in (("private", tool.private_only), ("writes", tool.writes)) if so]
    head = f"## {tool.name}" + (f" ({', '.join(kind)})" if kind else "")
    schema = dict(tool.schema)
    rows = [
        (f"`{name}`", _kind_of(said), _bounds(schema, name), said["description"])
        for name, said in schema["properties"].items()
    ]
    told = (
        [table(["argument", "type", "", "meaning"], rows)] if rows else ["It takes no arguments."]
    )
    return "\n\n".join([head, tool.description, *told])


def _kind_of(said: Json) -> str:
    return ", ".join(f"`{one}`" for one in said["enum"]) if "enum" in said else said["type"]


def _bounds(schema: Json, name: str) -> str:
    """Whether it has to be said, and what is meant where it is not."""
    if name in schema["required"]:
        return "required"
    said = schema["properties"][name]
    if "default" not in said:
        return "optional"
    return f"default `{msgspec.json.encode(said['default']).decode()}`"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "commands.md": commands,
    "graphql.md": graphql,
    "metrics.md": metrics,
    "refusals.md": refusals,
    "rest.md": rest,
    "settings.md": settings,
    "tools.md": tools,
}


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for name, write in PAGES.items():
        (REFERENCE / name).write_text(write(), "utf-8")


if __name__ == "__main__":
    main()
