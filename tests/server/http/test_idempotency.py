"""Idempotency keys: a repeated request runs once and gets the same response."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.server.http.test_app import problem
from tests.support.sample_endpoints import (
    ADA,
    MovableClock,
    Note,
    client,
    put,
    sample_app,
    sample_ports,
)

from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.ports import Ports
from carrel.server.http.app import HttpApp
from carrel.server.http.endpoint import Request, Response, endpoint

pytestmark = pytest.mark.anyio

REPLAY = "openwop-idempotent-replay"
KEY = {"Idempotency-Key": "k-1"}
URL = "/v1/notes/a.md"


async def version(ports: Ports) -> int:
    """The note's version, which counts its writes."""
    [tree] = await ports.trees.read([ADA.scope], [Path("a.md")])
    head = tree.heads.get(Path("a.md"))
    return head.version if head else 0


async def send(http: httpx.AsyncClient, text: str = "one", **headers: str) -> httpx.Response:
    return await http.put(URL, json={"text": text}, headers=KEY | headers)


async def test_a_repeated_request_gets_the_same_response_and_writes_nothing() -> None:
    ports = sample_ports()
    async with client(sample_app(ports=ports)) as http:
        first, second = await send(http), await send(http)
    assert first.status_code == second.status_code == 200
    assert first.content == second.content
    assert first.headers["etag"] == second.headers["etag"] == '"v1"'
    assert REPLAY not in first.headers
    assert second.headers[REPLAY] == "true"
    assert await version(ports) == 1


async def test_without_a_key_every_request_is_executed() -> None:
    ports = sample_ports()
    async with client(sample_app(ports=ports)) as http:
        for _ in range(2):
            assert REPLAY not in (await http.put(URL, json={"text": "one"})).headers
    assert await version(ports) == 2


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (URL, {"text": "two"}, {}),
        (URL, {"text": "one", "lineCount": 2}, {}),
        (URL, {"text": "one"}, {"If-Match": '"v1"'}),
        (URL, {"text": "one"}, {"If-None-Match": "*"}),
    ],
)
async def test_a_key_reused_with_another_request_returns_409(
    path: str, body: dict[str, Any], headers: dict[str, str]
) -> None:
    ports = sample_ports()
    async with client(sample_app(ports=ports)) as http:
        await send(http)
        answer = await http.put(path, json=body, headers=KEY | headers)
        problem(answer, 409, "idempotency_key_mismatch")
    assert await version(ports) == 1


async def test_a_key_is_separate_per_path_and_per_caller() -> None:
    app = sample_app()
    async with client(app) as http, client(app, token="bob") as other:
        await send(http)
        elsewhere = await http.put("/v1/notes/b.md", json={"text": "one"}, headers=KEY)
        assert REPLAY not in elsewhere.headers
        assert REPLAY not in (await send(other)).headers
        encoded = await http.put("/v1/notes/%61.md", json={"text": "one"}, headers=KEY)
        assert encoded.headers[REPLAY] == "true"


async def test_concurrent_repeats_run_once_and_get_equal_responses() -> None:
    ports = sample_ports()
    async with client(sample_app(ports=ports)) as http:
        answers = await asyncio.gather(*[send(http) for _ in range(16)])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum(REPLAY in answer.headers for answer in answers) == 15
    assert await version(ports) == 1


async def test_a_final_refusal_is_replayed() -> None:
    async with client() as http:
        first = await send(http, **{"If-Match": '"v9"'})
        problem(first, 409, "workspace_conflict")
        await http.put(URL, json={"text": "other"})
        again = await send(http, **{"If-Match": '"v9"'})
        assert again.content == first.content
        assert again.headers[REPLAY] == "true"


def scripted_app(*answers: Response | Exception) -> tuple[HttpApp, list[int]]:
    """An app whose endpoint returns these results in order, and its call counter."""
    remaining, calls = list(answers), [0]

    @endpoint(
        "POST",
        "/v1/scripted",
        permission=Permission.WORKSPACE_WRITE,
        body=Note,
        idempotent=True,
        responses={200: None},
    )
    async def scripted(call: Request[Note]) -> Response:
        calls[0] += 1
        result = remaining.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    return sample_app(scripted), calls


@pytest.mark.parametrize(
    "transient",
    [
        ValidationError("no"),
        Forbidden("no"),
        Busy("no"),
        KeyError("a bug"),
        Response.empty(401),
        Response.empty(408),
        Response.empty(429),
        Response.empty(500),
        Response.empty(503),
    ],
)
async def test_a_transient_result_is_not_stored(transient: Response | Exception) -> None:
    app, calls = scripted_app(transient, Response.empty(204))
    async with client(app) as http:
        assert (await http.post("/v1/scripted", json={"text": "x"}, headers=KEY)).status_code >= 400
        for _ in range(2):
            answer = await http.post("/v1/scripted", json={"text": "x"}, headers=KEY)
            assert answer.status_code == 204
    assert calls == [2]


@pytest.mark.parametrize("final", [NotFound("no"), Conflict("no"), Response.empty(200)])
async def test_a_final_result_is_stored(final: Response | Exception) -> None:
    app, calls = scripted_app(final)
    async with client(app) as http:
        answers = [
            await http.post("/v1/scripted", json={"text": "x"}, headers=KEY) for _ in range(3)
        ]
    assert calls == [1]
    assert len({(answer.status_code, answer.content) for answer in answers}) == 1


async def test_only_replayable_headers_are_replayed() -> None:
    replayed = {"Location": "/v1/x", "ETag": '"1"'}
    app, _ = scripted_app(
        Response.json({"key": "shown once"}, 201, {**replayed, "Set-Cookie": "a=b"})
    )
    async with client(app) as http:
        await http.post("/v1/scripted", json={"text": "x"}, headers=KEY)
        again = await http.post("/v1/scripted", json={"text": "x"}, headers=KEY)
    assert (again.status_code, again.json()) == (201, {"key": "shown once"})
    assert (again.headers["location"], again.headers["etag"]) == ("/v1/x", '"1"')
    assert again.headers["content-type"] == "application/json"
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("key", ["", " ", "a b", "a\tb", "x" * 256, "ü"])
async def test_a_key_is_at_most_255_visible_ascii_characters(key: str) -> None:
    async with client() as http:
        header = {b"Idempotency-Key": key.encode("latin-1")}
        problem(await http.put(URL, json={"text": "x"}, headers=header), 400, "validation_error")
        longest = {"Idempotency-Key": "x" * 255}
        assert (await http.put(URL, json={"text": "x"}, headers=longest)).status_code == 200


async def test_a_key_with_a_running_request_returns_409_in_flight() -> None:
    ports, may_finish = sample_ports(), asyncio.Event()
    started = asyncio.Event()

    @endpoint("POST", "/v1/slow", body=Note, idempotent=True, responses={204: None})
    async def slow(call: Request[Note]) -> Response:
        started.set()
        await may_finish.wait()
        return Response.empty()

    async with client(sample_app(slow, ports=ports)) as http:
        first = asyncio.create_task(http.post("/v1/slow", json={"text": "x"}, headers=KEY))
        await started.wait()
        answer = await http.post("/v1/slow", json={"text": "x"}, headers=KEY)
        problem(answer, 409, "idempotency_in_flight")
        assert answer.headers["retry-after"] == "1"
        waiting = asyncio.create_task(http.post("/v1/slow", json={"text": "x"}, headers=KEY))
        may_finish.set()
        assert (await first).status_code == 204
        assert (await waiting).headers[REPLAY] == "true"


class Lost(BaseException):
    """The process died between the commit and the response."""


def dying_app(ports: Ports) -> HttpApp:
    """An app whose endpoint commits and dies before it responds."""

    @endpoint(
        "PUT",
        "/v1/notes/{path...}",
        permission=Permission.WORKSPACE_WRITE,
        body=Note,
        idempotent=True,
        id="sample_endpoints_put",
        responses={200: None},
    )
    async def put_and_die(call: Request[Note]) -> Response:
        await put.run(call)
        raise Lost

    return sample_app(put_and_die, ports=ports)


async def test_a_response_lost_after_the_commit_is_rebuilt_from_the_commit() -> None:
    ports = sample_ports()
    async with client(dying_app(ports)) as http:
        with pytest.raises(Lost):
            await send(http)
    assert await version(ports) == 1
    async with client(sample_app(ports=ports)) as http:
        first, second = await send(http), await send(http)
    for answer in (first, second):
        assert answer.json() == {"path": "a.md", "version": 1, "etag": '"v1"'}
        assert answer.headers[REPLAY] == "true"
        assert answer.headers["etag"] == '"v1"'
    async with client(dying_app(ports)) as http:
        assert (await send(http)).content == first.content
    assert await version(ports) == 1


async def test_a_lost_response_that_cannot_be_rebuilt_returns_409() -> None:
    ports = sample_ports()
    app = dying_app(ports)
    async with client(app) as http:
        with pytest.raises(Lost):
            await send(http)
        body = problem(await send(http), 409, "conflict")
    assert body["details"] == {"versions": [1]}
    assert await version(ports) == 1


async def test_an_abandoned_claim_is_taken_over_after_a_minute() -> None:
    clock = MovableClock()
    ports = sample_ports(clock)
    dies = [True]

    @endpoint("POST", "/v1/dies", body=Note, idempotent=True, responses={204: None})
    async def dies_once(call: Request[Note]) -> Response:
        if dies.pop() if dies else False:
            raise Lost
        return Response.empty()

    async with client(sample_app(dies_once, ports=ports)) as http:
        with pytest.raises(Lost):
            await http.post("/v1/dies", json={"text": "x"}, headers=KEY)
        early = await http.post("/v1/dies", json={"text": "x"}, headers=KEY)
        problem(early, 409, "idempotency_in_flight")
        clock.ahead = 61_000
        late = await http.post("/v1/dies", json={"text": "x"}, headers=KEY)
        assert (late.status_code, REPLAY in late.headers) == (204, False)


async def test_a_malformed_request_claims_no_key() -> None:
    async with client() as http:
        problem(await http.put(URL, json={"text": 1}, headers=KEY), 400, "validation_error")
        assert (await send(http)).status_code == 200
