"""The OpenAPI document describes what the API does."""

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

WORKING = [toy for toy in SAMPLE_ENDPOINTS if toy not in (broken, corrupt)]
DOCUMENT: dict[str, Any] = build_document(WORKING, "Toys", "1.0")


def operation(method: str, path: str) -> dict[str, Any]:
    entry: dict[str, Any] = DOCUMENT["paths"][path][method]
    return entry


def test_the_document_names_its_openapi_version_and_title() -> None:
    assert re.match(r"3\.[1-9]", DOCUMENT["openapi"])
    assert DOCUMENT["info"]["title"] == "Toys"


def test_every_status_of_an_endpoint_is_documented() -> None:
    put = operation("put", "/v1/notes/{path}")["responses"]
    assert set(put) == {"200", "400", "401", "403", "404", "408", "409", "413", "429", "500", "503"}
    assert "`workspace_conflict`" in put["409"]["description"]
    assert "`idempotency_key_mismatch`" in put["409"]["description"]
    assert set(operation("get", "/alive")["responses"]) == {"200", "400", "500", "503"}
    echo = operation("get", "/v1/echo/{name}")["responses"]
    assert set(echo) == {"200", "400", "401", "403", "404", "429", "500", "503"}


def test_every_problem_is_the_closed_envelope() -> None:
    schema = operation("put", "/v1/notes/{path}")["responses"]["400"]["content"]
    assert schema["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    envelope = DOCUMENT["components"]["schemas"]["Problem"]
    assert envelope["additionalProperties"] is False
    assert envelope["required"] == ["error", "message"]


def test_parameters_headers_and_bodies_are_documented() -> None:
    put = operation("put", "/v1/notes/{path}")
    required = {
        (parameter["in"], parameter["name"]): parameter["required"]
        for parameter in put["parameters"]
    }
    assert required == {
        ("path", "path"): True,
        ("header", "If-Match"): False,
        ("header", "If-None-Match"): False,
        ("header", "Idempotency-Key"): False,
    }
    body = put["requestBody"]
    assert body["required"] is True
    note = DOCUMENT["components"]["schemas"]["Note"]
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Note"}
    assert note["additionalProperties"] is False
    assert "lineCount" in note["properties"]
    assert operation("post", "/v1/options")["requestBody"]["required"] is False


def test_query_fields_are_documented_as_non_null_parameters() -> None:
    schemas = {
        parameter["name"]: parameter["schema"]
        for parameter in operation("get", "/v1/echo/{name}")["parameters"]
        if parameter["in"] == "query"
    }
    assert schemas["limit"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}
    assert schemas["word"] == {"type": "string"}
    assert schemas["raw"] == {"type": "boolean", "default": False}
    [many] = operation("get", "/v1/many")["parameters"]
    assert many["schema"] == {"type": "array", "items": {"type": "string"}}
    assert "Look" not in DOCUMENT["components"]["schemas"]


def test_security_requirements_are_documented() -> None:
    assert operation("get", "/alive")["security"] == []
    put = operation("put", "/v1/notes/{path}")
    service: dict[str, list[str]] = {"serviceKey": [], "tenant": []}
    assert put["security"] == [{"bearer": []}, service, {"session": [], "ownPage": []}]
    echo = operation("get", "/v1/echo/{name}")
    assert echo["security"] == [{"bearer": []}, service, {"session": []}]
    schemes = {
        name: scheme["type"] for name, scheme in DOCUMENT["components"]["securitySchemes"].items()
    }
    assert schemes.pop("bearer") == "http"
    assert schemes == dict.fromkeys(("serviceKey", "tenant", "session", "ownPage"), "apiKey")
    assert "`workspace:write`" in put["description"]
    assert operation("get", "/v1/echo/{name}")["description"] == "And nothing else."


def test_every_schema_is_valid_json_schema() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_two_endpoints_with_one_id_are_refused() -> None:
    @endpoint("GET", "/other", id="sample_endpoints_alive", public=True)
    async def other(call: Request) -> Response:
        return Response.empty()

    with pytest.raises(ValueError, match="sample_endpoints_alive"):
        build_document([*SAMPLE_ENDPOINTS, other], "Toys", "1.0")


@pytest.mark.anyio
async def test_the_document_is_public_and_revalidated_by_etag() -> None:
    async with client(token="") as http:
        first = await http.get("/openapi.json")
        also = await http.get("/v1/openapi.json?x=1")
        again = await http.get("/openapi.json", headers={"If-None-Match": first.headers["etag"]})
    assert first.json() == also.json()
    assert {"/openapi.json", "/docs", "/metrics", "/alive"} <= set(first.json()["paths"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.anyio
async def test_the_docs_page_runs_only_its_own_script() -> None:
    async with client(token="") as http:
        answer = await http.get("/docs")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in re.sub(r"<!doctype html>|</?html[^>]*>", "", answer.text)
    assert answer.text.count("<script>") == answer.text.count("<style>") == 1
    assert not re.search(r"\bon\w+=|style=|innerHTML", answer.text)


APP = create_app(sample_ports(), WORKING, authenticate, metrics=Metrics())
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)


RESULTS: Any = SCHEMA.get_all_operations()
OPERATIONS = [result.ok() for result in RESULTS]
FUZZ = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
WITH_INPUT = [item for item in OPERATIONS if item.body or item.path_parameters or item.query]
"""Operations that take input."""
LENIENT = {"GET /v1/loose", "GET /v1/many"}
"""Operations that accept input outside their description."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.label))
def test_requests_that_match_the_document_pass_every_check(operation: Any) -> None:
    @FUZZ
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def fuzz(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(headers={"Authorization": "Bearer ada"})

    fuzz()


@pytest.mark.parametrize("operation", WITH_INPUT, ids=lambda operation: str(operation.label))
def test_requests_that_break_the_document_pass_every_check(operation: Any) -> None:
    tolerated = [negative_data_rejection] if operation.label in LENIENT else []

    @FUZZ
    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def fuzz(case: schemathesis.Case[Any]) -> None:
        signed = {"Authorization": "Bearer ada"}
        case.call_and_validate(headers=signed, excluded_checks=tolerated)

    fuzz()
