"""Responses, events and webhooks of a server match its published schemas."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from tests.support.server_process import FILES, ServerProcess, serving

from carrel.core.store.event import EVENT_TYPES, WEBHOOK_TEST
from carrel.server.rest.meta.json_schemas import SCHEMAS

pytestmark = pytest.mark.anyio
Json = dict[str, Any]

UPDATED = "workspace.updated"
STREAMS = {"workspaceEvents", "tenantEvents", "runEvents"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("documents")
    with serving(data, webhooks_private="true") as server:
        yield server


@pytest.fixture
async def owner(live: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with live.http() as client:
        yield client


async def assert_valid(client: httpx.AsyncClient, name: str, value: Any) -> None:
    """Raises ValidationError."""
    answer = await client.get(f"/schemas/{name}.schema.json")
    assert answer.headers["content-type"] == "application/schema+json"
    _check(answer.json(), value)


def _check(schema: Json, value: Any) -> None:
    checker = Draft202012Validator.FORMAT_CHECKER
    Draft202012Validator(schema, format_checker=checker).validate(value)


async def test_schemas_are_public_closed_and_name_their_own_address(live: ServerProcess) -> None:
    async with live.http(token="") as anonymous:
        for name in SCHEMAS:
            answer = await anonymous.get(f"/schemas/{name}")
            schema = answer.json()
            Draft202012Validator.check_schema(schema)
            assert schema["$id"] == f"/schemas/{name}"
            assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
            assert schema["additionalProperties"] is False
            tag = {"If-None-Match": answer.headers["etag"]}
            assert (await anonymous.get(f"/schemas/{name}", headers=tag)).status_code == 304
        assert (await anonymous.get("/schemas/nothing.schema.json")).status_code == 404


async def test_files_match_their_schema(owner: httpx.AsyncClient) -> None:
    sent = {"content": "Be kind."}
    await assert_valid(owner, "workspace-file-create", sent)
    put = await owner.put(f"{FILES}/schema/SOUL.md", json=sent)
    await assert_valid(owner, "workspace-file", put.json())
    await assert_valid(owner, "workspace-file", (await owner.get(f"{FILES}/schema/SOUL.md")).json())
    with pytest.raises(ValidationError):
        await assert_valid(owner, "workspace-file", {**put.json(), "more": 1})
    for wrong in ({}, {"content": 1}, {"content": "", "path": "a"}, {"content": "", "more": 1}):
        with pytest.raises(ValidationError):
            await assert_valid(owner, "workspace-file-create", wrong)
        assert (await owner.put(f"{FILES}/a.md", json=wrong)).status_code == 400


async def test_capability_matches_its_schema(owner: httpx.AsyncClient) -> None:
    capability = (await owner.get("/.well-known/openwop")).json()
    await assert_valid(owner, "workspace-capability", capability["workspace"])
    await assert_valid(owner, "workspace-capability", capability["capabilities"]["workspace"])


async def test_every_error_matches_the_envelope(
    owner: httpx.AsyncClient, live: ServerProcess
) -> None:
    await owner.put(f"{FILES}/no.md", json={"content": "1"})
    responses = [
        await owner.get(f"{FILES}/nowhere.md"),
        await owner.get("/nowhere"),
        await owner.get(f"{FILES}/no.md?version=x"),
        await owner.put(f"{FILES}/no.md", json={"content": ""}, headers={"If-Match": '"v9"'}),
        await owner.put(f"{FILES}/big.md", json={"content": "x" * (2**20 + 1)}),
        await owner.put(f"{FILES}/no.md", content=b"{"),
        await owner.patch(f"{FILES}/no.md"),
    ]
    async with live.http(token="nobody's") as stranger:
        responses.append(await stranger.get(FILES))
    assert [response.status_code for response in responses] == [
        404,
        404,
        400,
        409,
        413,
        400,
        405,
        401,
    ]
    for response in responses:
        await assert_valid(owner, "error-envelope", response.json())
    assert responses[3].json()["details"] == {"currentVersion": 1}


async def read_events(client: httpx.AsyncClient, path: str, count: int) -> list[tuple[str, Json]]:
    """The first events of a stream, with their types."""
    events: list[tuple[str, Json]] = []
    head = {"Accept": "text/event-stream", "Last-Event-ID": "0"}
    async with asyncio.timeout(30), client.stream("GET", path, headers=head) as stream:
        kind = ""
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            if line.startswith("data: "):
                events.append((kind, json.loads(line.removeprefix("data: "))))
            if len(events) == count:
                return events
    return events


def message_schema(document: Json, channel: str, type: str) -> Json:
    """The schema of messages of a type in a channel."""
    refs = [item["$ref"] for item in document["channels"][channel]["messages"].values()]
    names = [ref.removeprefix("#/components/messages/") for ref in refs]
    messages = document["components"]["messages"]
    [payload] = [messages[name]["payload"] for name in names if messages[name]["name"] == type]
    return dict(payload)


async def test_streams_match_the_documents(owner: httpx.AsyncClient) -> None:
    document = (await owner.get("/asyncapi.json")).json()
    started = (await owner.post("/v1/runs", json={"workflowId": "nightly"})).json()
    head = {"Carrel-Run": started["runId"]}
    await owner.put(f"{FILES}/told.md", json={"content": "1"}, headers=head)
    ended = await owner.patch(started["statusUrl"], json={"status": "completed"})
    assert ended.status_code == 200

    log = (await owner.get(started["eventsUrl"])).json()["events"]
    assert [event["type"] for event in log] == ["run.started", "workspace.updated", "run.completed"]
    for event in log:
        await assert_valid(owner, "run-event", event)
        _check(message_schema(document, "runEvents", event["type"]), event)
    await assert_valid(owner, "workspace-updated", log[1]["payload"])
    assert [event for _, event in await read_events(owner, started["eventsUrl"], 3)] == log

    for channel, path, count in (
        ("workspaceEvents", "/v1/host/workspace/events", 1),
        ("tenantEvents", "/v1/events", 3),
    ):
        for kind, event in await read_events(owner, path, count):
            assert kind == event["type"]
            _check(message_schema(document, channel, kind), event)


async def received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Json:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = re.search(r"content-length: (\d+)", head)
    assert length is not None
    assert "webhook-signature: v1," in head
    body: Json = json.loads(await reader.readexactly(int(length[1])))
    writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()
    return body


async def test_webhooks_match_the_documents(owner: httpx.AsyncClient) -> None:
    document = (await owner.get("/asyncapi.json")).json()
    bodies: asyncio.Queue[Json] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.put_nowait(await received(reader, writer))

    async with await asyncio.start_server(receive, "127.0.0.1", 0) as receiver:
        port = receiver.sockets[0].getsockname()[1]
        webhook = {"url": f"http://127.0.0.1:{port}/", "events": ["*"]}
        assert (await owner.post("/v1/webhooks", json=webhook)).status_code == 201
        run = (await owner.post("/v1/runs", json={"workflowId": "conformance-noop"})).json()
        await owner.put(f"{FILES}/posted.md", json={"content": "1"})
        async with asyncio.timeout(30):
            posted = [await bodies.get() for _ in range(3)]
    assert {body["type"] for body in posted} == {"run.started", "run.completed", UPDATED}
    assert {body["data"].get("runId") for body in posted} == {run["runId"], None}
    for body in posted:
        _check(message_schema(document, "webhooks", body["type"]), body)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def resolve(document: Json, reference: str) -> Any:
    """The target of a reference within the document. Raises KeyError."""
    place: Any = document
    for part in reference.removeprefix("#/").split("/"):
        place = place[part]
    return place


async def test_asyncapi_document_is_consistent(owner: httpx.AsyncClient) -> None:
    document = (await owner.get("/asyncapi.json")).json()
    assert re.fullmatch(r"3\.0\.\d+", document["asyncapi"])
    assert {"title", "version"} <= set(document["info"])
    assert set(document["channels"]) == STREAMS | {"webhooks"}
    for reference in references(document):
        assert reference.startswith("#/"), reference
        assert resolve(document, reference)
    for operation in document["operations"].values():
        assert operation["action"] == "send"
        channel = operation["channel"]["$ref"]
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")
    for name, message in document["components"]["messages"].items():
        assert message["name"] in {*EVENT_TYPES, WEBHOOK_TEST}, name
        Draft202012Validator.check_schema(message["payload"])
    assert document["components"]["messages"]["WorkspaceUpdated"]["name"] == UPDATED


async def test_every_channel_is_an_address_of_the_api_with_every_type(
    owner: httpx.AsyncClient,
) -> None:
    document = (await owner.get("/asyncapi.json")).json()
    paths = (await owner.get("/openapi.json")).json()["paths"]
    addresses = {
        re.sub(r"\{\w+\}", "{}", path) for path, methods in paths.items() if "get" in methods
    }
    for name, channel in document["channels"].items():
        if name == "webhooks":
            assert channel["address"] is None
        else:
            assert re.sub(r"\{\w+\}", "{}", channel["address"]) in addresses
        assert set(re.findall(r"\{(\w+)\}", channel["address"] or "")) == set(
            channel.get("parameters", {})
        )
        for type in [UPDATED] if name == "workspaceEvents" else EVENT_TYPES:
            assert message_schema(document, name, type)


def test_every_schema_is_published() -> None:
    assert {name.removesuffix(".schema.json") for name in SCHEMAS} == {
        "workspace-file",
        "workspace-file-create",
        "workspace-capability",
        "workspace-updated",
        "run-event",
        "error-envelope",
    }
