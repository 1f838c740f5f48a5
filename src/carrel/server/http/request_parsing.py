"""Taking in what a client sends: its headers, query and body, within limits and strictly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect

from carrel.core.errors import PayloadTooLarge, ValidationError
from carrel.server.http.endpoint import Headers
from carrel.server.http.read_timeouts import ReadTimeouts

Message: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

_JSON: Final = re.compile(rb"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_INT: Final = re.compile(r"-?[0-9]{1,18}")  # What every database can hold.
_FLOAT: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
_FRACTION: Final = "Expected `int`, got `float`"


class ClientDisconnected(Exception):
    """The client left before it had said everything."""


class ReadTimeout(Exception):
    """The client took too long to send its body."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    body: int = 8 * 1024 * 1024
    """Bytes of a body. Above the largest file even where JSON escapes each of its bytes."""
    patience: float = 30.0
    """Seconds that a body may take, and a second more for every ``slowest`` bytes of it."""
    slowest: int = 16 * 1024


def merge_headers(pairs: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of which some came on several lines."""
    headers: dict[bytes, bytes] = {}
    for name, value in pairs:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


async def read_body(
    receive: Receive, headers: Headers, most: int, limits: BodyLimits, read_timeouts: ReadTimeouts
) -> bytes:
    """The whole body. Raises BodyTooLarge, TooSlow or Gone."""
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 15 or int(declared) > most):
        raise _too_large(most)
    until = asyncio.get_running_loop().time() + limits.patience
    buffer = bytearray()
    while True:
        try:
            message = await read_timeouts.wait_for(receive(), until, limits.patience)
        except TimeoutError:
            raise ReadTimeout from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body = message.get("body", b"")
        if len(buffer) + len(body) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(buffer + body) if buffer else body
        buffer += body
        until += len(body) / limits.slowest


def _too_large(most: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"a request may have {most} bytes", maxBytes=most)


class BodyReader:
    """Turns bytes into the Struct that an endpoint declared."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode
        try:
            self._decode(b"{}")
        except msgspec.ValidationError:
            self.required = True
        else:
            self.required = False

    def read(self, raw: bytes, headers: Headers) -> Any:
        """Raises Malformed. Where nothing is required, no body is an empty one."""
        kind = headers.get(b"content-type")
        if kind != b"application/json" and kind and raw and not _JSON.fullmatch(kind):
            raise ValidationError("the body must be application/json")
        try:
            return self._fitted(raw if raw or self.required else b"{}")
        except msgspec.ValidationError as wrong:
            raise ValidationError(f"the body does not fit: {wrong}") from None
        except msgspec.DecodeError as wrong:
            raise ValidationError(f"the body is not JSON: {wrong}") from None
        except UnicodeDecodeError:
            raise ValidationError("the body is not UTF-8") from None
        except RecursionError:
            raise ValidationError("the body is nested too deeply") from None

    def _fitted(self, raw: bytes) -> Any:
        try:
            return self._decode(raw)
        except msgspec.ValidationError as wrong:
            if _FRACTION not in str(wrong):
                raise
            # To JSON Schema, and so to our description, 1.0 is an integer.
            return msgspec.convert(_whole(msgspec.json.decode(raw)), self._kind)


def _whole(value: Any) -> Any:
    """The same value, its numbers without a fraction as integers."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class QueryReader:
    """Turns a query string into the Struct that an endpoint declared, or into nothing."""

    def __init__(self, kind: Any = None, loose: bool = False) -> None:
        self._kind = kind
        self._loose = loose
        self._fields, self._many = _parameters(kind)
        self._before: dict[bytes, Any] = {}
        """Short queries as they came and what they mean, which is a value that never changes."""
        self._blank = None if kind is None or self._needs_some() else self._convert({})

    def read(self, text: bytes) -> Any:
        """Raises Malformed."""
        if not text and (self._blank is not None or self._kind is None):
            return self._blank
        found = self._before.get(text)
        if found is None:
            found = self._read(text)
            if found is not None and len(text) <= 64 and len(self._before) < 64:
                self._before[text] = found
        return found

    def _read(self, text: bytes) -> Any:
        found: dict[str, Any] = {}
        for pair in text.split(b"&") if text else ():
            raw, _, value = pair.partition(b"=")
            name = _plain(raw)
            parse = self._fields.get(name)
            if parse is not None:
                self._take(found, name, parse, _plain(value))
            elif pair and not self._loose:
                raise ValidationError(f"there is no query parameter {_shown(name)} here")
        return self._convert(found) if self._kind is not None else None

    def _take(
        self, found: dict[str, Any], name: str, parse: Callable[[str], Any], text: str
    ) -> None:
        try:
            value = parse(text)
        except ValueError:
            raise ValidationError(f"the query parameter {name} does not fit") from None
        if name in self._many:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise ValidationError(f"the query parameter {name} came twice")
        else:
            found[name] = value

    def _needs_some(self) -> bool:
        try:
            self._convert({})
        except ValidationError:
            return True
        return False

    def _convert(self, found: dict[str, Any]) -> Any:
        try:
            return msgspec.convert(found, self._kind)
        except msgspec.ValidationError as wrong:
            raise ValidationError(f"the query does not fit: {wrong}") from None


def _plain(raw: bytes) -> str:
    try:
        if b"%" in raw or b"+" in raw:
            raw = unquote_to_bytes(raw.replace(b"+", b" "))
        return raw.decode()
    except UnicodeDecodeError:
        raise ValidationError("the query is not UTF-8") from None


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 40 else name[:39] + "…")


@cache
def _parameters(kind: Any) -> tuple[Mapping[str, Callable[[str], Any]], frozenset[str]]:
    """How each is read, and which of them may come several times."""
    info = inspect.type_info(kind) if kind is not None else None
    fields = info.fields if isinstance(info, inspect.StructType) else ()
    several = {field.encode_name: _element(field.type) for field in fields}
    parsers = {
        field.encode_name: _parser(several[field.encode_name] or field.type) for field in fields
    }
    return parsers, frozenset(name for name, one in several.items() if one is not None)


def _plainly(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """The alternatives of a type, None and annotations left out."""
    if isinstance(kind, inspect.Metadata):
        return _plainly(kind.type)
    if isinstance(kind, inspect.UnionType):
        return tuple(one for each in kind.types for one in _plainly(each))
    return () if isinstance(kind, inspect.NoneType) else (kind,)


def _element(kind: inspect.Type) -> inspect.Type | None:
    """What a parameter that may come several times is made of."""
    several = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
    return next((one.item_type for one in _plainly(kind) if isinstance(one, several)), None)


def _parser(kind: inspect.Type) -> Callable[[str], Any]:
    for one in _plainly(kind):
        if isinstance(one, inspect.BoolType):
            return _bool
        if isinstance(one, inspect.IntType):
            return _int
        if isinstance(one, inspect.FloatType):
            return _float
    return str


def _bool(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(text)
    return text == "true"


def _int(text: str) -> int:
    if not _INT.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _float(text: str) -> float:
    if not _FLOAT.fullmatch(text) or not isfinite(float(text)):
        raise ValueError(text)
    return float(text)
