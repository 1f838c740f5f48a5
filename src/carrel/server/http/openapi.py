"""OpenAPI document, generated from the endpoint declarations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from carrel.core.errors import (
    Forbidden,
    IdempotencyInFlight,
    IdempotencyKeyMismatch,
    NotFound,
    Refusal,
    TooManyAttempts,
    Unauthenticated,
    ValidationError,
)
from carrel.server.http.cookies import CSRF_HEADER, SAFE_METHODS, SESSION_COOKIE
from carrel.server.http.endpoint import Endpoint
from carrel.server.http.error_responses import (
    CORRUPT,
    INTERNAL_ERROR,
    REFUSAL_HEADERS,
    REFUSAL_STATUS,
    REQUEST_TIMEOUT,
    UNAVAILABLE,
    Problem,
)
from carrel.server.http.request_parsing import BodyReader
from carrel.server.http.response import EVENT_STREAM

Json = dict[str, Any]

_PATH_PARAMETER: Final = re.compile(r"\{(\w+)(\.\.\.)?\}")
_IDEMPOTENCY_KEY_SCHEMA: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": "^[!-~]+$",
}
_REF_PREFIX: Final = "#/components/schemas/"
_NON_EMPTY_STRING: Final = {"type": "string", "minLength": 1}
_STRING: Final = {"type": "string"}
_BYTES: Final = {"type": "string", "format": "binary"}
_EVENT_SCHEMA: Final = {
    "type": "object",
    "properties": {"id": _STRING, "event": _STRING, "data": _STRING},
    "required": ["data"],
}
"""Schema of one server-sent event."""
_SECURITY_SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "serviceKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "tenant": {"type": "apiKey", "in": "header", "name": "x-tenant-id"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
    "ownPage": {
        "type": "apiKey",
        "in": "header",
        "name": CSRF_HEADER,
        "description": "`1`; required with a session cookie when the method is not safe.",
    },
}
_SECURITY: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"serviceKey": [], "tenant": []}]
"""Any credential as a bearer token, or a service key with its tenant."""
_REQUEST_ID_HEADER: Final = {
    "description": "Request id, as in the server's logs.",
    "schema": _STRING,
}


def require_unique_ids(endpoints: Sequence[Endpoint]) -> None:
    """Raise ValueError if two endpoints share an id."""
    ids = Counter(endpoint.id for endpoint in endpoints)
    if duplicates := [id for id, count in ids.items() if count > 1]:
        raise ValueError(f"duplicate endpoint ids: {', '.join(sorted(duplicates))}")


def build_document(endpoints: Sequence[Endpoint], title: str, version: str) -> Json:
    """Build the OpenAPI document. Raises ValueError if two endpoints share an id."""
    require_unique_ids(endpoints)
    schemas = _Schemas(endpoints)
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        path_item = paths.setdefault(_PATH_PARAMETER.sub(r"{\1}", endpoint.path), {})
        path_item[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "license": {"name": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(e.tag for e in endpoints)],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


class _Schemas:
    """JSON Schemas of every type the endpoints use."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        models = [Problem, *(model for endpoint in endpoints for model in _models(endpoint))]
        schemas, self.components = msgspec.json.schema_components(
            models, ref_template=_REF_PREFIX + "{name}"
        )
        self._schemas = list(zip(models, schemas, strict=True))
        queries = [endpoint.query for endpoint in endpoints if endpoint.query is not None]
        self._queries = {model: self._resolve(self.schema_for(model)) for model in queries}
        for model in queries:
            self.components.pop(self.schema_for(model)["$ref"].removeprefix(_REF_PREFIX), None)

    def schema_for(self, model: Any) -> Json:
        return next(schema for candidate, schema in self._schemas if candidate == model)

    def query_schema(self, model: Any) -> Json:
        """Schema of a query model. Its fields become parameters, so it is not a component."""
        return self._queries[model]

    def _resolve(self, schema: Json) -> Json:
        component: Json = self.components[schema["$ref"].removeprefix(_REF_PREFIX)]
        return component


def _models(endpoint: Endpoint) -> Iterator[Any]:
    if endpoint.query is not None:
        yield endpoint.query
    if endpoint.body not in (None, bytes):
        yield endpoint.body
    if endpoint.error_dialect is not None:
        yield endpoint.error_dialect.problem_model
    yield from endpoint.params.values()
    for response in endpoint.responses.values():
        models = response if isinstance(response, tuple) else (response,)
        yield from (model for model in models if not isinstance(model, str | frozenset | None))


def _operation(endpoint: Endpoint, schemas: _Schemas) -> Json:
    operation: Json = {
        "operationId": endpoint.id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary or endpoint.id,
        "security": [] if endpoint.public else _security(endpoint),
        "parameters": list(_parameters(endpoint, schemas)),
        "responses": _responses(endpoint, schemas),
    }
    if description := _description(endpoint):
        operation["description"] = description
    if endpoint.body is bytes:
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    elif endpoint.body is not None:
        content = {"application/json": {"schema": schemas.schema_for(endpoint.body)}}
        if endpoint.receive_bytes is not None:
            content["*/*"] = {"schema": _BYTES}
        operation["requestBody"] = {
            "required": BodyReader(endpoint.body).required,
            "content": content,
        }
    return operation


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    csrf: dict[str, list[str]] = {} if endpoint.method in SAFE_METHODS else {"ownPage": []}
    return [*_SECURITY, {"session": [], **csrf}]


def _description(endpoint: Endpoint) -> str:
    permission_note = f"Requires `{endpoint.permission}`." if endpoint.permission else ""
    return "\n\n".join(filter(None, (endpoint.description, permission_note)))


def _parameters(endpoint: Endpoint, schemas: _Schemas) -> Iterator[Json]:
    for name, catch_all in _PATH_PARAMETER.findall(endpoint.path):
        model = endpoint.params.get(name)
        schema = _NON_EMPTY_STRING if model is None else schemas.schema_for(model)
        parameter: Json = {"name": name, "in": "path", "required": True, "schema": schema}
        if catch_all:
            parameter["description"] = "Slashes may be percent-encoded."
        yield parameter
    if endpoint.query is not None:
        yield from _query_parameters(schemas.query_schema(endpoint.query))
    for header in endpoint.headers:
        schema = {"enum": list(header.choices)} if header.choices else _STRING
        yield {**_header(header.name, schema), "description": header.description}
    if endpoint.idempotent:
        description = "Repeating the key within 24 hours returns the first response again."
        yield {**_header("Idempotency-Key", _IDEMPOTENCY_KEY_SCHEMA), "description": description}


def _header(name: str, schema: Json) -> Json:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _query_parameters(query_schema: Json) -> Iterator[Json]:
    for name, schema in query_schema["properties"].items():
        plain = _parameter_schema(schema)
        description = {"description": plain.pop("description")} if "description" in plain else {}
        required = name in query_schema["required"]
        yield {"name": name, "in": "query", "required": required, "schema": plain, **description}


def _parameter_schema(schema: Json) -> Json:
    """Schema of a query parameter: never null, integers within the database's range."""
    plain = {key: value for key, value in schema.items() if key != "anyOf"}
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    plain.update(choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})
    if "default" in plain and plain["default"] in (None, [], ()):
        del plain["default"]
    if plain.get("type") == "integer":
        plain.setdefault("maximum", 10**18 - 1)
        plain.setdefault("minimum", 1 - 10**18)
    return plain


def _responses(endpoint: Endpoint, schemas: _Schemas) -> Json:
    responses: Json = {}
    for status, model in sorted(endpoint.responses.items()):
        responses[str(status)] = response = _response(
            HTTPStatus(status).phrase, endpoint.response_headers
        )
        if isinstance(model, str | frozenset):
            media_types = {model} if isinstance(model, str) else model
            response["content"] = {
                name: {"schema": _schema_of(name)} for name in sorted(media_types)
            }
        elif isinstance(model, tuple):
            any_of = [schemas.schema_for(alternative) for alternative in model]
            response["content"] = {"application/json": {"schema": {"anyOf": any_of}}}
        elif model is not None:
            response["content"] = {"application/json": {"schema": schemas.schema_for(model)}}
        if status in endpoint.byte_responses:
            response.setdefault("content", {})["*/*"] = {"schema": _BYTES}
    error_model = (
        Problem if endpoint.error_dialect is None else endpoint.error_dialect.problem_model
    )
    media_type = (
        "application/json" if endpoint.error_dialect is None else endpoint.error_dialect.media_type
    )
    for status, codes, headers in _error_responses(endpoint):
        problem = _response(" or ".join(f"`{code}`" for code in codes), headers)
        problem["content"] = {media_type: {"schema": schemas.schema_for(error_model)}}
        responses[str(status)] = problem
    return dict(sorted(responses.items()))


def _schema_of(media_type: str) -> Json:
    if media_type == EVENT_STREAM:
        return _EVENT_SCHEMA
    return {} if media_type.endswith("json") else _STRING


def _response(description: str, headers: Iterable[str]) -> Json:
    extra_headers = {name: {"schema": _STRING} for name in headers}
    return {
        "description": description,
        "headers": {"X-Request-Id": _REQUEST_ID_HEADER, **extra_headers},
    }


def _error_responses(endpoint: Endpoint) -> Iterator[tuple[int, list[str], set[str]]]:
    """Each error status with its codes and response headers."""
    refusals = dict.fromkeys((*endpoint.refusals, *_implied_refusals(endpoint)))
    codes: dict[int, list[str]] = {}
    headers: dict[int, set[str]] = {}
    for refusal in refusals:
        codes.setdefault(REFUSAL_STATUS[refusal], []).append(refusal.code)
        names = {name.decode().title() for name, _ in REFUSAL_HEADERS.get(refusal, ())}
        headers.setdefault(REFUSAL_STATUS[refusal], set()).update(names)
    if endpoint.body is not None:
        codes[REQUEST_TIMEOUT[0]] = [REQUEST_TIMEOUT[1]]
    codes[INTERNAL_ERROR[0]] = [INTERNAL_ERROR[1], CORRUPT[1]]
    codes[UNAVAILABLE[0]] = [UNAVAILABLE[1]]
    for status in sorted(codes):
        yield status, codes[status], headers.get(status, set())


def _implied_refusals(endpoint: Endpoint) -> Iterator[type[Refusal]]:
    """Refusals the request pipeline may raise before the handler runs."""
    parameters = bool(_PATH_PARAMETER.search(endpoint.path))
    if parameters or endpoint.query or endpoint.body or not endpoint.allow_unknown_query:
        yield ValidationError
    if not endpoint.public:
        yield from (Unauthenticated, Forbidden, TooManyAttempts)
    if parameters:
        yield NotFound
    if endpoint.body is not None:
        yield endpoint.body_too_large
    if endpoint.idempotent:
        yield from (ValidationError, IdempotencyKeyMismatch, IdempotencyInFlight)
