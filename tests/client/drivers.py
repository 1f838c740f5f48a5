"""The client over each of its drivers, as one awaitable API, with its own tenant."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path as FilePath
from typing import Any, Final

import httpx
from tests.support.server_process import PLAIN, ServerProcess

import carrel
from carrel_client import AsyncClient, Client
from carrel_client.drivers import Resource
from carrel_client.event_iterators import EventStream

BLOCKING: Final = "blocking"
AWAITING: Final = "awaiting"
IN_PROCESS: Final = "in-process"
DRIVERS: Final = (BLOCKING, AWAITING, IN_PROCESS)
PLATFORM_TOKEN: Final = "carrel_platform_of_the_client_tests"
EVENT_SECONDS: Final = 30.0


class Awaited:
    """A blocking resource whose operations run in a thread, so that tests can await them."""

    def __init__(self, resource: Any) -> None:
        self._resource = resource

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._resource, name)
        if not callable(attribute):
            return _awaited(attribute)
        if not _is_operation(type(self._resource), name):
            return lambda *args, **options: _awaited(attribute(*args, **options))

        async def call(*args: Any, **options: Any) -> Any:
            return _awaited(await asyncio.to_thread(attribute, *args, **options))

        return call

    def __repr__(self) -> str:
        return repr(self._resource)


class AwaitedEvents:
    """A blocking event stream, read in a thread."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def __aenter__(self) -> AwaitedEvents:
        await asyncio.to_thread(self._stream.start)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._stream.close)

    def __aiter__(self) -> AwaitedEvents:
        return self

    async def __anext__(self) -> Any:
        event = await asyncio.to_thread(next, self._stream, None)
        if event is None:
            raise StopAsyncIteration
        return event


def _is_operation(owner: type, name: str) -> bool:
    """Whether a method is an operation: its wrapped function is a generator."""
    function = inspect.getattr_static(owner, name, None)
    return inspect.isgeneratorfunction(inspect.unwrap(function)) if function else False


def _awaited(value: Any) -> Any:
    if isinstance(value, EventStream):
        return AwaitedEvents(value)
    if isinstance(value, Resource):
        return Awaited(value)
    return tuple(map(_awaited, value)) if isinstance(value, tuple) else value


@asynccontextmanager
async def open_client(driver: str, live: ServerProcess, directory: FilePath) -> AsyncIterator[Any]:
    """The client as the owner of a new tenant, over a driver."""
    if driver == IN_PROCESS:
        async with carrel.open(directory) as client:
            yield client
        return
    token = await _create_tenant(live)
    if driver == AWAITING:
        async with AsyncClient(live.url, token) as client:
            yield client
        return
    with Client(live.url, token) as client:
        yield Awaited(client)


async def _create_tenant(live: ServerProcess) -> str:
    slug = "t" + secrets.token_hex(6)
    owner = {"name": "Owner", "email": f"owner@{slug}.example"}
    body = {"slug": slug, "name": slug, "owner": owner}
    headers = {"Authorization": f"Bearer {PLATFORM_TOKEN}"}
    async with httpx.AsyncClient(base_url=live.url, verify=PLAIN, timeout=60) as http:
        response = await http.post("/v1/tenants", json=body, headers=headers)
    assert response.status_code == 201, response.text
    return str(response.json()["ownerToken"])


async def next_event(stream: Any) -> Any:
    return await asyncio.wait_for(anext(stream), EVENT_SECONDS)
