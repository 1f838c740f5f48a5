"""How the app handles a request from its headers to its response."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.support.sample_endpoints import client, sample_app, send_raw

from carrel.server.http.app import Mount
from carrel.server.http.endpoint import Request, Response, endpoint

pytestmark = pytest.mark.anyio

NOTE = "/v1/notes/a.md"


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """Assert a problem response and return its envelope."""
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["error"]) == (status, code), body
    assert set(body) <= {"error", "message", "details"}
    assert body["message"]
    assert body.get("details", {"some": 1})
    assert answer.headers["content-type"] == "application/json"
    return body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", NOTE),
        ("PUT", NOTE),
        ("GET", "/v1/nothing"),
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("PATCH", NOTE),
        ("GET", "/v1/notes/%zz"),
        ("GET", "/v1/echo/a?unknown=1"),
        ("POST", "/v1/openapi.json"),
    ],
)
async def test_without_a_valid_token_every_path_under_v1_is_401(method: str, path: str) -> None:
    for token in ("", "wrong"):
        async with client(token=token) as http:
            answer = await http.request(method, path)
            problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_missing_token_is_refused_before_the_body_is_read() -> None:
    async with client(token="") as http:
        problem(await http.put(NOTE, content=b"x" * 9_000_000), 401, "unauthenticated")
        problem(await http.put(NOTE, content=b"no json"), 401, "unauthenticated")


async def test_a_public_endpoint_needs_no_credential() -> None:
    async with client(token="") as http:
        assert (await http.get("/alive")).json() == {"alive": True}
        assert (await http.get("/v1/openapi.json")).status_code == 200


async def test_an_unknown_path_is_404_and_a_wrong_method_405() -> None:
    async with client() as http:
        problem(await http.get("/v1/nothing"), 404, "not_found")
        problem(await http.get("/nothing"), 404, "not_found")
        answer = await http.patch(NOTE)
        problem(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS, PUT"


async def test_options_lists_the_allowed_methods() -> None:
    async with client(token="") as http:
        answer = await http.options(NOTE)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS, PUT"


async def test_head_is_get_without_the_body() -> None:
    async with client() as http:
        get = await http.get("/v1/echo/a")
        head = await http.head("/v1/echo/a")
        assert head.status_code == 200
        assert head.content == b""
        assert head.headers["content-length"] == str(len(get.content))
        assert head.headers["etag"] == '"e"'
        assert (await http.head("/v1/ticks/3")).status_code == 200
    [_, body] = await send_raw(sample_app(), b"/v1/echo/a", "HEAD")
    assert body["body"] == b""


async def test_a_credential_without_the_permission_is_forbidden() -> None:
    async with client(token="reader") as http:
        body = problem(await http.put(NOTE, json={"text": "x"}), 403, "forbidden")
        assert body["details"] == {"scope": "workspace:write"}
        problem(await http.get(NOTE), 404, "not_found")


async def test_permission_is_checked_before_path_query_and_body() -> None:
    async with client(token="reader") as http:
        problem(await http.put("/v1/notes/%ff?x=1", content=b"no json"), 403, "forbidden")


async def test_the_platform_credential_only_creates_tenants() -> None:
    async with client(token="root") as http:
        assert (await http.post("/v1/tenants")).status_code == 201
        problem(await http.get("/v1/echo/a"), 403, "forbidden")
        problem(await http.get(NOTE), 403, "forbidden")
    async with client() as http:
        problem(await http.post("/v1/tenants"), 403, "forbidden")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field `text`"),
        (b'{"text": 1}', "Expected `str`"),
        (b'{"text": "a", "path": "b"}', "unknown field `path`"),
        (b'{"text": "a", "lineCount": 10}', "<= 9"),
        (b'{"text": "a", "line_count": 1}', "unknown field"),
        (b'{"text": "\xff"}', "not UTF-8"),
        (b'{"\xff": 1}', "not UTF-8"),
        (b'{"text": "\\ud800"}', "not JSON"),
        (b'{"text": "a", "extra": ' + b"[" * 100_000, "too deeply"),
        (b'{"text": "a", "extra": ' + b'{"a":' * 100_000, "too deeply"),
        (b'{"text": "a", "extra": 1e999}', "out of range"),
        (b'{"text": "a"} trailing', "trailing"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"\x00", "not JSON"),
    ],
)
async def test_a_malformed_body_returns_400(body: bytes, expected: str) -> None:
    async with client() as http:
        answer = await http.put(NOTE, content=body)
        assert expected in problem(answer, 400, "validation_error")["message"]


@pytest.mark.parametrize(
    ("kind", "accepted"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/merge-patch+json", True),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("application/jsonp", False),
    ],
)
async def test_a_content_type_other_than_json_is_refused(kind: str, accepted: bool) -> None:
    async with client() as http:
        content = b'{"text": "a"}'
        answer = await http.put(NOTE, content=content, headers={"Content-Type": kind})
        assert (answer.status_code == 200) is accepted
        assert (await http.put(NOTE, content=content)).status_code == 200
        if not accepted:
            problem(answer, 400, "validation_error")


async def test_a_number_without_a_fraction_is_an_integer() -> None:
    async with client() as http:
        integral = {"text": "a", "lineCount": 2.0, "extra": [1.5, {"a": 3.0}]}
        assert (await http.put(NOTE, json=integral)).status_code == 200
        fractional = {"text": "a", "lineCount": 2.5}
        problem(await http.put(NOTE, json=fractional), 400, "validation_error")


async def test_without_required_fields_a_missing_body_is_an_empty_object() -> None:
    async with client() as http:
        assert (await http.post("/v1/options")).json() == {"dryRun": False}
        assert (await http.post("/v1/options", json={"dryRun": True})).json() == {"dryRun": True}


async def test_a_bytes_body_arrives_unchanged_up_to_its_limit() -> None:
    async with client() as http:
        assert (await http.post("/v1/bytes", content=b"\xff" * 100_000)).json() == {"size": 100_000}
        answer = await http.post("/v1/bytes", content=b"\xff" * 100_001)
        assert problem(answer, 413, "payload_too_large")["details"] == {"maxBytes": 100_000}


async def test_a_body_without_a_declared_length_is_counted() -> None:
    async def chunks() -> Any:
        for _ in range(11):
            yield b"x" * 10_000

    async with client() as http:
        problem(await http.post("/v1/bytes", content=chunks()), 413, "payload_too_large")


async def test_a_declared_length_over_the_limit_is_refused_unread() -> None:
    length = (b"content-length", b"9" * 5000)
    start, _ = await send_raw(sample_app(), b"/v1/bytes", "POST", [length])
    assert start["status"] == 413


async def test_query_values_are_converted_to_the_declared_types() -> None:
    async with client() as http:
        answer = await http.get("/v1/echo/a%2Fb?limit=7&raw=true&word=a+b%2B&at=1.5")
        assert answer.json()["params"] == {"name": "a/b"}
        assert answer.json()["query"] == {
            "limit": 7,
            "raw": True,
            "word": "a b+",
            "at": 1.5,
        }
        assert (await http.get("/v1/echo/a?word=null")).json()["query"]["word"] == "null"
        assert (await http.get("/v1/echo/a?word=")).json()["query"]["word"] == ""
        assert (await http.get("/v1/echo/a")).json()["query"]["limit"] == 10
        assert (await http.get("/v1/echo/a?&limit=9&")).json()["query"]["limit"] == 9
        assert (await http.get("/v1/many?word=x&word=y")).json() == ["x", "y"]
        assert (await http.get("/v1/many")).json() == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=51",
        "limit=x",
        "limit=",
        "limit",
        "limit=1.0",
        "limit=+1",
        "limit=" + "9" * 5000,
        "limit=1&limit=2",
        "raw=1",
        "raw=yes",
        "at=nan",
        "at=inf",
        "at=1e999",
        "at=null",
        "word=%ff",
        "%ff=1",
        "tenant=globex",
        "Limit=1",
        "=1",
        "=",
        "limit=1&unknown=" + "x" * 10_000,
    ],
)
async def test_a_malformed_query_returns_400(query: str) -> None:
    async with client() as http:
        answer = await http.get(f"/v1/echo/a?{query}")
        assert len(problem(answer, 400, "validation_error")["message"]) < 200


async def test_an_endpoint_without_a_query_refuses_one() -> None:
    async with client() as http:
        problem(await http.get("/alive?x=1"), 400, "validation_error")
        assert (await http.get("/alive?")).status_code == 200


async def test_a_loose_endpoint_ignores_unknown_query_parameters() -> None:
    async with client() as http:
        answer = await http.get("/v1/loose?tenant=globex&workspaceId=x&limit=3&tenant=acme")
        assert answer.json() == {"limit": 3, "tenant": "acme"}
        problem(await http.get("/v1/loose?limit=x"), 400, "validation_error")


async def test_repeated_headers_are_joined_into_one_list() -> None:
    app = sample_app()
    words = [(b"x-word", b"one"), (b"x-word", b"two")]
    [_, body] = await send_raw(app, b"/v1/echo/a", headers=words)
    assert json.loads(body["body"])["word"] == "one, two"
    twice = [(b"authorization", b"Bearer bob")]
    [start, _] = await send_raw(app, b"/v1/echo/a", headers=twice)
    assert start["status"] == 401


@pytest.mark.parametrize(
    "request_id", ["abc", "0af7651916cd43dd8448eb211c80319c", "a.b:c_d-e", "x" * 128]
)
async def test_a_valid_request_id_is_returned_unchanged(request_id: str) -> None:
    async with client() as http:
        answer = await http.get("/v1/nothing", headers={"X-Request-Id": request_id})
        assert answer.headers["x-request-id"] == request_id
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("request_id", ["", " ", "a b", "a\tb", "x" * 129, "ü", '"'])
async def test_an_invalid_request_id_is_replaced(request_id: str) -> None:
    async with client() as http:
        header = {"X-Request-Id": request_id.encode("latin-1")}
        first = await http.get("/alive", headers=header)  # type: ignore[arg-type]  # bytes are fine
        second = await http.get("/alive")
        ids = {first.headers["x-request-id"], second.headers["x-request-id"]}
        assert len(ids) == 2
        assert all(name.startswith("req_") for name in ids)


async def test_an_invalid_percent_encoding_in_the_path_returns_400() -> None:
    for path in (b"/v1/notes/%zz", b"/v1/notes/%ff", b"/v1/echo/%", b"/v1/notes/\xff"):
        start, body = await send_raw(sample_app(), path)
        assert (start["status"], json.loads(body["body"])["error"]) == (400, "validation_error")


async def test_a_mount_answers_under_its_prefix_and_not_under_v1() -> None:
    calls: list[tuple[str, str]] = []

    async def other(scope: Any, receive: Any, send: Any) -> None:
        calls.append((scope["root_path"], scope["path"]))
        if scope["path"] == "/other/fail":
            raise KeyError("content")
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b"other"})

    app = sample_app(mounts=[Mount("/other", other), Mount("/", other)])
    async with client(app, token="") as http:
        answer = await http.get("/other/x")
        assert (answer.status_code, answer.content) == (202, b"other")
        assert answer.headers["x-request-id"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await http.get("/otherwise")).content == b"other"
        assert (await http.get("/alive")).json() == {"alive": True}
        problem(await http.get("/v1/nothing"), 401, "unauthenticated")
        problem(await http.get("/other/fail"), 500, "internal_error")
    assert calls[:2] == [("/other", "/other/x"), ("", "/otherwise")]


async def test_start_and_stop_are_acknowledged_and_close_the_streams() -> None:
    app = sample_app()
    messages = iter(["lifespan.startup", "lifespan.shutdown"])
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        return {"type": next(messages)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    await app({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert app.closing.is_set()


async def test_a_websocket_is_closed() -> None:
    sent: list[str] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    await sample_app()({"type": "websocket"}, None, send)  # type: ignore[arg-type]  # never called
    assert sent == ["websocket.close"]


def test_an_endpoint_with_open_fields_or_public_idempotency_is_refused() -> None:
    class Open(msgspec.Struct):
        text: str

    async def run(call: Request) -> Response:
        return Response.empty()

    with pytest.raises(ValueError, match="unknown fields"):
        endpoint("PUT", "/x", body=Open)(run)
    with pytest.raises(ValueError, match="cannot be public"):
        endpoint("PUT", "/x", public=True, idempotent=True)(run)
