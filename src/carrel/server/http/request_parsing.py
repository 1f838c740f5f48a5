"""Parses request headers, query and body, strictly and within limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from carrel.core.errors import PayloadTooLarge, Refusal, ValidationError
from carrel.core.lru_cache import LruCache
from carrel.server.http.endpoint import Headers
from carrel.server.http.read_timeouts import ReadTimeouts

Message: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

_JSON: Final = re.compile(rb"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_INT: Final = re.compile(r"-?[0-9]{1,18}")  # Fits a 64-bit database column.
_FLOAT: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
_MAX_CACHED_QUERIES: Final = 64
_MAX_CACHED_QUERY_BYTES: Final = 64
_FLOAT_FOR_INT: Final = "Expected `int`, got `float`"


class ClientDisconnected(Exception):
    """The client disconnected before the body was complete."""


class ReadTimeout(Exception):
    """The client took too long to send the body."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Size and time limits of request bodies."""

    max_bytes: int = 8 * 1024 * 1024
    """Maximum body size; above the largest file even when JSON escapes every byte."""
    timeout_seconds: float = 30.0
    """Seconds a body may take, plus 1 per `min_bytes_per_second` bytes received."""
    min_bytes_per_second: int = 16 * 1024


def merge_headers(pairs: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers by name, with repeated ones joined by commas."""
    headers: dict[bytes, bytes] = {}
    for name, value in pairs:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


def parse_bearer_token(headers: Headers) -> str:
    """Token of the Authorization header, with or without "Bearer"; empty if it has none."""
    value = headers.get(b"authorization", b"").decode("latin-1").strip()
    if value[:7].lower() == "bearer ":
        return value[7:].strip()
    return "" if " " in value else value


async def read_body(
    receive: Receive,
    headers: Headers,
    max_bytes: int,
    limits: BodyLimits,
    read_timeouts: ReadTimeouts,
    too_large: type[Refusal] = PayloadTooLarge,
) -> bytes:
    """Read the body. Raises `too_large`, ReadTimeout or ClientDisconnected."""
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 15 or int(declared) > max_bytes):
        raise body_too_large(max_bytes, too_large)
    deadline = asyncio.get_running_loop().time() + limits.timeout_seconds
    buffer = bytearray()
    while True:
        message = await _receive_part(receive, deadline, limits, read_timeouts)
        body: bytes = message.get("body", b"")
        if len(buffer) + len(body) > max_bytes:
            raise body_too_large(max_bytes, too_large)
        if not message.get("more_body", False):
            return bytes(buffer + body) if buffer else body
        buffer += body
        deadline += len(body) / limits.min_bytes_per_second


async def read_body_parts(
    receive: Receive, limits: BodyLimits, read_timeouts: ReadTimeouts
) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises ReadTimeout or ClientDisconnected."""
    deadline = asyncio.get_running_loop().time() + limits.timeout_seconds
    while True:
        message = await _receive_part(receive, deadline, limits, read_timeouts)
        body: bytes = message.get("body", b"")
        yield body
        if not message.get("more_body", False):
            return
        deadline += len(body) / limits.min_bytes_per_second


async def _receive_part(
    receive: Receive, deadline: float, limits: BodyLimits, read_timeouts: ReadTimeouts
) -> Message:
    try:
        message = await read_timeouts.wait_for(receive(), deadline, limits.timeout_seconds)
    except TimeoutError:
        raise ReadTimeout from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return message


def is_json(headers: Headers) -> bool:
    """Whether the body is JSON; that is so without a content type, too."""
    content_type = headers.get(b"content-type")
    return (
        content_type == b"application/json"
        or not content_type
        or _JSON.fullmatch(content_type) is not None
    )


def body_too_large(max_bytes: int, refusal: type[Refusal]) -> Refusal:
    return refusal(f"request body exceeds {max_bytes} bytes", maxBytes=max_bytes)


class BodyReader:
    """Decodes a JSON body to the model of an endpoint."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._decode = msgspec.json.Decoder(model).decode
        try:
            self._decode(b"{}")
        except msgspec.ValidationError:
            self.required = True
        else:
            self.required = False

    def read(self, raw: bytes, headers: Headers) -> Any:
        """Decode the body. Raises ValidationError.

        An empty body means `{}` if no field is required.
        """
        if raw and not is_json(headers):
            raise ValidationError("the body must be application/json")
        try:
            return self._decode_with_integral_floats(raw if raw or self.required else b"{}")
        except msgspec.ValidationError as error:
            raise ValidationError(f"invalid body: {error}") from None
        except msgspec.DecodeError as error:
            raise ValidationError(f"the body is not JSON: {error}") from None
        except UnicodeDecodeError:
            raise ValidationError("the body is not UTF-8") from None
        except RecursionError:
            raise ValidationError("the body is nested too deeply") from None

    def _decode_with_integral_floats(self, raw: bytes) -> Any:
        try:
            return self._decode(raw)
        except msgspec.ValidationError as error:
            if _FLOAT_FOR_INT not in str(error):
                raise
            # In JSON Schema, and so in our OpenAPI document, 1.0 is an integer.
            return msgspec.convert(_integral_floats_to_int(msgspec.json.decode(raw)), self._model)


def _integral_floats_to_int(value: Any) -> Any:
    """Copy of a JSON value with integral floats as integers."""
    if isinstance(value, dict):
        return {key: _integral_floats_to_int(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_integral_floats_to_int(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class QueryReader:
    """Decodes a query string to the model of an endpoint, or None if it has none."""

    def __init__(self, model: Any = None, allow_unknown: bool = False) -> None:
        self._model = model
        self._allow_unknown = allow_unknown
        self._fields, self._repeatable = _parameters(model)
        self._cache: LruCache[bytes, Any] = LruCache(_MAX_CACHED_QUERIES)
        """Parsed models of short query strings; models are immutable."""
        self._empty = None if model is None or self._has_required_field() else self._convert({})

    def read(self, text: bytes) -> Any:
        """Parse a query string. Raises ValidationError."""
        if not text and (self._empty is not None or self._model is None):
            return self._empty
        parsed = self._cache.get(text)
        if parsed is None:
            parsed = self._parse(text)
            if parsed is not None and len(text) <= _MAX_CACHED_QUERY_BYTES:
                self._cache.put(text, parsed)
        return parsed

    def _parse(self, text: bytes) -> Any:
        values: dict[str, Any] = {}
        for pair in text.split(b"&") if text else ():
            raw, _, value = pair.partition(b"=")
            name = _decode_component(raw)
            parse = self._fields.get(name)
            if parse is not None:
                self._add_value(values, name, parse, _decode_component(value))
            elif pair and not self._allow_unknown:
                raise ValidationError(f"unknown query parameter: {_quote_name(name)}")
        return self._convert(values) if self._model is not None else None

    def _add_value(
        self, values: dict[str, Any], name: str, parse: Callable[[str], Any], text: str
    ) -> None:
        try:
            value = parse(text)
        except ValueError:
            raise ValidationError(f"invalid query parameter: {name}") from None
        if name in self._repeatable:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise ValidationError(f"repeated query parameter: {name}")
        else:
            values[name] = value

    def _has_required_field(self) -> bool:
        try:
            self._convert({})
        except ValidationError:
            return True
        return False

    def _convert(self, values: dict[str, Any]) -> Any:
        try:
            return msgspec.convert(values, self._model)
        except msgspec.ValidationError as error:
            raise ValidationError(f"invalid query: {error}") from None


def _decode_component(raw: bytes) -> str:
    try:
        if b"%" in raw or b"+" in raw:
            raw = unquote_to_bytes(raw.replace(b"+", b" "))
        return raw.decode()
    except UnicodeDecodeError:
        raise ValidationError("the query is not UTF-8") from None


def _quote_name(name: str) -> str:
    return ascii(name if len(name) <= 40 else name[:39] + "…")


@cache
def _parameters(model: Any) -> tuple[Mapping[str, Callable[[str], Any]], frozenset[str]]:
    """Parser of each parameter, and the names that may be repeated."""
    info = inspect.type_info(model) if model is not None else None
    fields = info.fields if isinstance(info, inspect.StructType) else ()
    element_types = {field.encode_name: _element_type(field.type) for field in fields}
    parsers = {
        field.encode_name: _parser(element_types[field.encode_name] or field.type)
        for field in fields
    }
    return parsers, frozenset(
        name for name, element in element_types.items() if element is not None
    )


def _alternatives(field_type: inspect.Type) -> tuple[inspect.Type, ...]:
    """Members of a union type without None and annotations."""
    if isinstance(field_type, inspect.Metadata):
        return _alternatives(field_type.type)
    if isinstance(field_type, inspect.UnionType):
        return tuple(
            alternative for member in field_type.types for alternative in _alternatives(member)
        )
    return () if isinstance(field_type, inspect.NoneType) else (field_type,)


def _element_type(field_type: inspect.Type) -> inspect.Type | None:
    """Element type of a repeatable parameter, or None."""
    collection_types = (
        inspect.ListType,
        inspect.SetType,
        inspect.FrozenSetType,
        inspect.VarTupleType,
    )
    return next(
        (
            alternative.item_type
            for alternative in _alternatives(field_type)
            if isinstance(alternative, collection_types)
        ),
        None,
    )


def _parser(field_type: inspect.Type) -> Callable[[str], Any]:
    for alternative in _alternatives(field_type):
        if isinstance(alternative, inspect.BoolType):
            return _parse_bool
        if isinstance(alternative, inspect.IntType):
            return _parse_int
        if isinstance(alternative, inspect.FloatType):
            return _parse_float
    return str


def _parse_bool(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(text)
    return text == "true"


def _parse_int(text: str) -> int:
    if not _INT.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _parse_float(text: str) -> float:
    if not _FLOAT.fullmatch(text) or not isfinite(float(text)):
        raise ValueError(text)
    return float(text)
