"""The description of the API says what the API does."""

from __future__ import annotations

import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from jsonschema.validators import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection
from tests.support.sample_endpoints import (
    SAMPLE_ENDPOINTS,
    authenticate,
    broken,
    client,
    corrupt,
    sample_ports,
)

from carrel.server.http.app import create_app
from carrel.server.http.endpoint import Request, Response, endpoint
from carrel.server.http.metrics import Metrics
from carrel.server.http.openapi import build_document

SOUND = [toy for toy in SAMPLE_ENDPOINTS if toy not in (broken, corrupt)]
TOLD: dict[str, Any] = build_document(SOUND, "Toys", "1.0")


def operation(method: str, path: str) -> dict[str, Any]:
    told: dict[str, Any] = TOLD["paths"][path][method]
    return told


def test_it_says_which_openapi_it_is_and_who_made_it() -> None:
    assert re.match(r"3\.[1-9]", TOLD["openapi"])
    assert TOLD["info"]["title"] == "Toys"


def test_every_status_that_an_endpoint_can_give_is_told() -> None:
    put = operation("put", "/v1/notes/{path}")["responses"]
    assert set(put) == {"200", "400", "401", "403", "404", "408", "409", "413", "500", "503"}
    assert "`workspace_conflict`" in put["409"]["description"]
    assert "`idempotency_key_mismatch`" in put["409"]["description"]
    assert set(operation("get", "/alive")["responses"]) == {"200", "400", "500", "503"}
    echo = operation("get", "/v1/echo/{name}")["responses"]
    assert set(echo) == {"200", "400", "401", "403", "404", "500", "503"}


def test_every_problem_is_the_closed_envelope() -> None:
    schema = operation("put", "/v1/notes/{path}")["responses"]["400"]["content"]
    assert schema["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    envelope = TOLD["components"]["schemas"]["Problem"]
    assert envelope["additionalProperties"] is False
    assert envelope["required"] == ["error", "message"]


def test_parameters_headers_and_bodies_are_told() -> None:
    put = operation("put", "/v1/notes/{path}")
    told = {(one["in"], one["name"]): one["required"] for one in put["parameters"]}
    assert told == {
        ("path", "path"): True,
        ("header", "If-Match"): False,
        ("header", "If-None-Match"): False,
        ("header", "Idempotency-Key"): False,
    }
    body = put["requestBody"]
    assert body["required"] is True
    note = TOLD["components"]["schemas"]["Note"]
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Note"}
    assert note["additionalProperties"] is False
    assert "lineCount" in note["properties"]
    assert operation("post", "/v1/options")["requestBody"]["required"] is False


def test_a_query_is_told_as_parameters_that_are_never_null() -> None:
    told = {
        one["name"]: one["schema"]
        for one in operation("get", "/v1/echo/{name}")["parameters"]
        if one["in"] == "query"
    }
    assert told["limit"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}
    assert told["word"] == {"type": "string"}
    assert told["raw"] == {"type": "boolean", "default": False}
    [many] = operation("get", "/v1/many")["parameters"]
    assert many["schema"] == {"type": "array", "items": {"type": "string"}}
    assert "Look" not in TOLD["components"]["schemas"]


def test_who_must_show_a_credential_is_told() -> None:
    assert operation("get", "/alive")["security"] == []
    put = operation("put", "/v1/notes/{path}")
    service: dict[str, list[str]] = {"serviceKey": [], "tenant": []}
    assert put["security"] == [{"bearer": []}, service, {"session": [], "ownPage": []}]
    echo = operation("get", "/v1/echo/{name}")
    assert echo["security"] == [{"bearer": []}, service, {"session": []}]
    told = {name: scheme["type"] for name, scheme in TOLD["components"]["securitySchemes"].items()}
    assert told.pop("bearer") == "http"
    assert told == dict.fromkeys(("serviceKey", "tenant", "session", "ownPage"), "apiKey")
    assert "`workspace:write`" in put["description"]
    assert operation("get", "/v1/echo/{name}")["description"] == "And nothing else."


def test_every_schema_is_one() -> None:
    for schema in TOLD["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_two_endpoints_of_one_name_are_refused() -> None:
    @endpoint("GET", "/other", id="sample_endpoints_alive", public=True)
    async def other(call: Request) -> Response:
        return Response.empty()

    with pytest.raises(ValueError, match="sample_endpoints_alive"):
        build_document([*SAMPLE_ENDPOINTS, other], "Toys", "1.0")


@pytest.mark.anyio
async def test_it_is_served_to_everybody_and_revalidated() -> None:
    async with client(token="") as http:
        first = await http.get("/openapi.json")
        also = await http.get("/v1/openapi.json?x=1")
        again = await http.get("/openapi.json", headers={"If-None-Match": first.headers["etag"]})
    assert first.json() == also.json()
    assert {"/openapi.json", "/docs", "/metrics", "/alive"} <= set(first.json()["paths"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.anyio
async def test_the_page_for_people_runs_nothing_but_its_own_script() -> None:
    async with client(token="") as http:
        answer = await http.get("/docs")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in re.sub(r"<!doctype html>|</?html[^>]*>", "", answer.text)
    assert answer.text.count("<script>") == answer.text.count("<style>") == 1
    assert not re.search(r"\bon\w+=|style=|innerHTML", answer.text)


APP = create_app(sample_ports(), SOUND, authenticate, metrics=Metrics())
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)


FOUND: Any = SCHEMA.get_all_operations()
OPERATIONS = [one.ok() for one in FOUND]
FUZZ = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
BENT = [one for one in OPERATIONS if one.body or one.path_parameters or one.query]
"""Those of which something can be got wrong."""
BENDABLE = {"GET /v1/loose", "GET /v1/many"}
"""Those that take what breaks their description: one ignores it, to one a number is a text."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.label))
def test_a_fuzzer_that_follows_it_finds_nothing(operation: Any) -> None:
    @FUZZ
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def fuzz(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(headers={"Authorization": "Bearer ada"})

    fuzz()


@pytest.mark.parametrize("operation", BENT, ids=lambda operation: str(operation.label))
def test_a_fuzzer_that_breaks_it_finds_nothing(operation: Any) -> None:
    tolerated = [negative_data_rejection] if operation.label in BENDABLE else []

    @FUZZ
    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def fuzz(case: schemathesis.Case[Any]) -> None:
        signed = {"Authorization": "Bearer ada"}
        case.call_and_validate(headers=signed, excluded_checks=tolerated)

    fuzz()
