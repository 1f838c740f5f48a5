"""The client is the same over every driver, and reaches every operation of the REST API."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final

import pytest

import carrel_client
from carrel.settings import Settings
from carrel.wiring.in_process import InProcessClient
from carrel.wiring.server_app import endpoints
from carrel_client import AsyncClient, Client
from carrel_client.client import ApiClient
from carrel_client.drivers import OpenedStream, Resource, Sleep, SyncDriver
from carrel_client.event_iterators import EventStream
from carrel_client.http_messages import HttpRequest, HttpResponse
from carrel_client.runs import Run
from carrel_client.sessions import Session

SOURCE: Final = FilePath(carrel_client.__file__).parent
LIFECYCLE: Final = {"close", "aclose", "over"}
"""Names that differ between clients: creation and closing."""
IN_PROCESS_ONLY: Final = {"of_actor", "of_tenant", "tenant"}
"""Names that need the store itself."""
NOT_THE_CLIENTS: Final = re.compile(
    r"/(?:git|graphql|metrics|docs|openapi|healthz|readyz|asyncapi|schemas|icon|ui|api|\.well-known)"
    r"|/$|/v1/(?:session|sign-in|openapi|workflows|host/workspace|memory_stores)\b(?!.*/events)"
)
"""Operations of browsers, of monitoring and of other protocols, which have their own clients."""


def public_names(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")}


def test_clients_have_the_same_public_names() -> None:
    common = public_names(ApiClient)
    assert public_names(Client) - common == {"close"}
    assert public_names(AsyncClient) - common == {"aclose", "over"}
    assert public_names(InProcessClient) - common - LIFECYCLE == IN_PROCESS_ONLY


def test_clients_take_the_same_arguments() -> None:
    blocking = inspect.signature(Client.__init__).parameters
    awaiting = inspect.signature(AsyncClient.__init__).parameters
    assert list(blocking) == list(awaiting)
    for name in public_names(ApiClient):
        assert inspect.getattr_static(Client, name) is inspect.getattr_static(AsyncClient, name)
        assert inspect.getattr_static(InProcessClient, name) is inspect.getattr_static(
            AsyncClient, name
        )


class RecordingDriver(SyncDriver):
    """Records the first requests of operations and answers none of them."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        raise EndOfOperation

    def open_stream(self, request: HttpRequest) -> OpenedStream:
        self.requests.append(request)
        raise EndOfOperation

    def read_chunk(self, stream: Any) -> bytes | None:
        raise AssertionError("no stream was opened")

    def close_stream(self, stream: Any) -> None:
        raise AssertionError("no stream was opened")

    def check_pause(self, pause: Sleep) -> None:
        raise AssertionError("no stream was opened")

    def close(self) -> None:
        pass


class EndOfOperation(BaseException):
    """Ends an operation at its first request."""


def resources(driver: SyncDriver) -> Iterator[Resource[SyncDriver]]:
    """One resource of each class that the client gives access to."""
    client: ApiClient[SyncDriver] = ApiClient(driver, "http://carrel")
    agent = client.agent("ada")
    run = {"runId": "run_1", "status": "running"}
    session = {"id": "s", "agentId": "ada", "scope": "main", "entryCount": 0}
    opened_run, opened_session = Run(driver, run), Session(driver, session)
    yield from (client, agent, client.template("t"), client.workspace(), client.defaults)
    yield from (opened_run, opened_run.workspace, opened_session)
    for owner in (client, agent):
        for name in public_names(type(owner)) | set(vars(owner)):
            attribute = inspect.getattr_static(owner, name)
            if isinstance(attribute, Resource | property) and name not in {"defaults"}:
                value = getattr(owner, name)
                if isinstance(value, Resource):
                    yield value


def arguments_of(function: Any, directory: FilePath) -> dict[str, Any]:
    """A value for every required argument."""
    values: dict[str, Any] = {
        "arguments": {},
        "policy": {},
        "entries": (),
        "positions": {"chat": 0},
        "directory": directory,
        "path": "a.md",
        "name": "n",
    }
    values |= {"source": b"x"}
    required = (
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    )
    numbers = {"version": 1, "approved": True, "changes": ()}
    return {name: numbers.get(name, values.get(name, "x")) for name in required}


def requests_of_every_operation(directory: FilePath) -> list[HttpRequest]:
    driver = RecordingDriver()
    for resource in resources(driver):
        for name in sorted(public_names(type(resource))):
            static = inspect.getattr_static(type(resource), name)
            if not inspect.isfunction(static) or not hasattr(static, "__wrapped__"):
                continue
            arguments = arguments_of(getattr(resource, name), directory)
            if name == "write_memory":
                arguments["name"] = "lessons.md"
            try:
                result = getattr(resource, name)(**arguments)
                if isinstance(result, EventStream):
                    next(result)
            except EndOfOperation:
                continue
            raise AssertionError(f"{resource}.{name} sent no request")
    return driver.requests


def test_every_rest_operation_is_reachable(tmp_path: FilePath) -> None:
    sent = {(request.method, request.path) for request in requests_of_every_operation(tmp_path)}
    missing = []
    for endpoint in endpoints(Settings()):
        if NOT_THE_CLIENTS.match(endpoint.path):
            continue
        pattern = re.compile(re.sub(r"\{\w+\.*\}", "[^/]+", endpoint.path))
        if not any(endpoint.method == method and pattern.fullmatch(path) for method, path in sent):
            missing.append(endpoint.name)
    # Streams of the client are by workspace; only a bound credential uses this one.
    assert missing == ["GET /v1/host/workspace/events"]


def test_every_request_is_one_of_the_rest_api(tmp_path: FilePath) -> None:
    patterns = [
        (endpoint.method, re.compile(re.sub(r"\{\w+\.*\}", "[^/]+", endpoint.path)))
        for endpoint in endpoints(Settings())
    ]
    for request in requests_of_every_operation(tmp_path):
        assert any(
            method == request.method and pattern.fullmatch(request.path)
            for method, pattern in patterns
        ), request


def test_conditions_are_spelled_alike_everywhere(tmp_path: FilePath) -> None:
    names: dict[str, set[str]] = {}
    for resource in resources(RecordingDriver()):
        for name in public_names(type(resource)):
            static = inspect.getattr_static(type(resource), name)
            if inspect.isfunction(static) and hasattr(static, "__wrapped__"):
                for parameter in inspect.signature(static).parameters:
                    names.setdefault(parameter, set()).add(f"{type(resource).__name__}.{name}")
    assert {"if_match", "if_none_match", "reason", "idempotency_key"} <= names.keys()
    synonyms = {"why", "if_absent", "etag", "by", "mode", "plugin", "sender", "run", "parent"}
    assert not synonyms & names.keys()


@pytest.mark.parametrize("file", sorted(SOURCE.glob("*.py")), ids=lambda file: file.name)
def test_client_is_valid_python_3_10(file: FilePath) -> None:
    ast.parse(file.read_text("utf-8"), feature_version=(3, 10))


def test_client_imports_the_standard_library_and_httpx_alone() -> None:
    for file in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            roots = {name.partition(".")[0] for name in names}
            assert roots <= sys.stdlib_module_names | {"carrel_client", "httpx"}, (file, roots)
