"""The OpenAPI document, made from the endpoints, so that it cannot tell otherwise."""

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
    PayloadTooLarge,
    Refusal,
    Unauthenticated,
    ValidationError,
)
from carrel.server.http.cookies import CSRF, SAFE, SESSION
from carrel.server.http.endpoint import Endpoint
from carrel.server.http.problems import (
    BROKEN,
    CORRUPT,
    EXTRA,
    STATUS,
    TOO_SLOW,
    UNAVAILABLE,
    Problem,
)
from carrel.server.http.request_parsing import BodyReader
from carrel.server.http.response import EVENT_STREAM

Json = dict[str, Any]

_PARAMETER: Final = re.compile(r"\{(\w+)(\.\.\.)?\}")
_KEY: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
_REF: Final = "#/components/schemas/"
_TEXT: Final = {"type": "string", "minLength": 1}
_STRING: Final = {"type": "string"}
_EVENT: Final = {
    "type": "object",
    "properties": {"id": _STRING, "event": _STRING, "data": _STRING},
    "required": ["data"],
}
"""Each event of a stream, as its lines tell it."""
_SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "serviceKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "tenant": {"type": "apiKey", "in": "header", "name": "x-tenant-id"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION},
    "ownPage": {
        "type": "apiKey",
        "in": "header",
        "name": CSRF,
        "description": "`1`, beside a session that changes something.",
    },
}
_SECURITY: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"serviceKey": [], "tenant": []}]
"""Any credential as a bearer's; a service's key also by itself, beside the tenant it is of."""
_REQUEST_ID: Final = {
    "description": "The id under which this request stands in the logs.",
    "schema": _STRING,
}


def unique_names(endpoints: Sequence[Endpoint]) -> None:
    """Raises ValueError where two endpoints have the same id."""
    ids = Counter(endpoint.id for endpoint in endpoints)
    if twice := [id for id, times in ids.items() if times > 1]:
        raise ValueError(f"several endpoints are called {', '.join(sorted(twice))}")


def document(endpoints: Sequence[Endpoint], title: str, version: str) -> Json:
    """The OpenAPI document of endpoints that can be told apart. Raises ValueError."""
    unique_names(endpoints)
    schemas = _Schemas(endpoints)
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        place = paths.setdefault(_PARAMETER.sub(r"{\1}", endpoint.path), {})
        place[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "license": {"name": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(e.tag for e in endpoints)],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": _SCHEMES,
        },
    }


class _Schemas:
    """The JSON Schema of every type that an endpoint names."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        kinds = [Problem, *(kind for endpoint in endpoints for kind in _kinds(endpoint))]
        made, self.components = msgspec.json.schema_components(kinds, ref_template=_REF + "{name}")
        self._made = list(zip(kinds, made, strict=True))
        queries = [endpoint.query for endpoint in endpoints if endpoint.query is not None]
        self._queries = {kind: self._resolved(self.of(kind)) for kind in queries}
        for kind in queries:
            self.components.pop(self.of(kind)["$ref"].removeprefix(_REF), None)

    def of(self, kind: Any) -> Json:
        return next(schema for known, schema in self._made if known == kind)

    def query(self, kind: Any) -> Json:
        """The schema of a query itself: its fields are parameters, so nothing refers to it."""
        return self._queries[kind]

    def _resolved(self, schema: Json) -> Json:
        found: Json = self.components[schema["$ref"].removeprefix(_REF)]
        return found


def _kinds(endpoint: Endpoint) -> Iterator[Any]:
    if endpoint.query is not None:
        yield endpoint.query
    if endpoint.body not in (None, bytes):
        yield endpoint.body
    if endpoint.error_dialect is not None:
        yield endpoint.error_dialect.problem
    yield from endpoint.params.values()
    yield from (kind for kind in endpoint.responses.values() if not isinstance(kind, str | None))


def _operation(endpoint: Endpoint, schemas: _Schemas) -> Json:
    told: Json = {
        "operationId": endpoint.id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary or endpoint.id,
        "security": [] if endpoint.public else _security(endpoint),
        "parameters": list(_parameters(endpoint, schemas)),
        "responses": _responses(endpoint, schemas),
    }
    if said := _said(endpoint):
        told["description"] = said
    if endpoint.body is bytes:
        told["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    elif endpoint.body is not None:
        content = {"application/json": {"schema": schemas.of(endpoint.body)}}
        told["requestBody"] = {"required": BodyReader(endpoint.body).required, "content": content}
    return told


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    page: dict[str, list[str]] = {} if endpoint.method in SAFE else {"ownPage": []}
    return [*_SECURITY, {"session": [], **page}]


def _said(endpoint: Endpoint) -> str:
    needs = f"Needs `{endpoint.permission}`." if endpoint.permission else ""
    return "\n\n".join(filter(None, (endpoint.description, needs)))


def _parameters(endpoint: Endpoint, schemas: _Schemas) -> Iterator[Json]:
    for name, rest in _PARAMETER.findall(endpoint.path):
        kind = endpoint.params.get(name)
        schema = _TEXT if kind is None else schemas.of(kind)
        told: Json = {"name": name, "in": "path", "required": True, "schema": schema}
        if rest:
            told["description"] = "Its slashes may be percent-encoded or not."
        yield told
    if endpoint.query is not None:
        yield from _query(schemas.query(endpoint.query))
    for header in endpoint.headers:
        schema = {"enum": list(header.choices)} if header.choices else _STRING
        yield {**_header(header.name, schema), "description": header.meaning}
    if endpoint.idempotent:
        once = "The same key again gives the same answer again, for a day."
        yield {**_header("Idempotency-Key", _KEY), "description": once}


def _header(name: str, schema: Json) -> Json:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _query(kind: Json) -> Iterator[Json]:
    for name, schema in kind["properties"].items():
        plain = _plain(schema)
        said = {"description": plain.pop("description")} if "description" in plain else {}
        required = name in kind["required"]
        yield {"name": name, "in": "query", "required": required, "schema": plain, **said}


def _plain(schema: Json) -> Json:
    """A query parameter's schema: it cannot be null, and its integers fit a database."""
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
    told: Json = {}
    for status, kind in sorted(endpoint.responses.items()):
        told[str(status)] = answer = _response(HTTPStatus(status).phrase, endpoint.response_headers)
        if isinstance(kind, str):
            answer["content"] = {kind: {"schema": _schema_of(kind)}}
        elif kind is not None:
            answer["content"] = {"application/json": {"schema": schemas.of(kind)}}
    shape = Problem if endpoint.error_dialect is None else endpoint.error_dialect.problem
    media = "application/json" if endpoint.error_dialect is None else endpoint.error_dialect.media
    for status, codes, headers in _problems(endpoint):
        problem = _response(" or ".join(f"`{code}`" for code in codes), headers)
        problem["content"] = {media: {"schema": schemas.of(shape)}}
        told[str(status)] = problem
    return dict(sorted(told.items()))


def _schema_of(media_type: str) -> Json:
    if media_type == EVENT_STREAM:
        return _EVENT
    return {} if media_type.endswith("json") else _STRING


def _response(description: str, headers: Iterable[str]) -> Json:
    named = {name: {"schema": _STRING} for name in headers}
    return {"description": description, "headers": {"X-Request-Id": _REQUEST_ID, **named}}


def _problems(endpoint: Endpoint) -> Iterator[tuple[int, list[str], set[str]]]:
    """Each status that is no success, with its codes and the headers it comes with."""
    refusals = dict.fromkeys((*endpoint.refusals, *_implied(endpoint)))
    codes: dict[int, list[str]] = {}
    headers: dict[int, set[str]] = {}
    for refusal in refusals:
        codes.setdefault(STATUS[refusal], []).append(refusal.code)
        names = {name.decode().title() for name, _ in EXTRA.get(refusal, ())}
        headers.setdefault(STATUS[refusal], set()).update(names)
    if endpoint.body is not None:
        codes[TOO_SLOW[0]] = [TOO_SLOW[1]]
    codes[BROKEN[0]] = [BROKEN[1], CORRUPT[1]]
    codes[UNAVAILABLE[0]] = [UNAVAILABLE[1]]
    for status in sorted(codes):
        yield status, codes[status], headers.get(status, set())


def _implied(endpoint: Endpoint) -> Iterator[type[Refusal]]:
    """What the pipeline may refuse before the endpoint is asked."""
    parameters = bool(_PARAMETER.search(endpoint.path))
    if parameters or endpoint.query or endpoint.body or not endpoint.allow_unknown_query:
        yield ValidationError
    if not endpoint.public:
        yield from (Unauthenticated, Forbidden)
    if parameters:
        yield NotFound
    if endpoint.body is not None:
        yield PayloadTooLarge
    if endpoint.idempotent:
        yield from (ValidationError, IdempotencyKeyMismatch, IdempotencyInFlight)
