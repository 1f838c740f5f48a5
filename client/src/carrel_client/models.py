"""Models of the API's records, decoded from JSON by their fields' names.

A field has the JSON name in snake case; ``facts`` is the JSON object itself, so that what a newer
server adds is there too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar, cast

from carrel_client.errors import InvalidResponse

Decode = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Base of the models."""

    facts: Mapping[str, Any] = field(repr=False, compare=False)
    """The JSON object of the response."""


ModelType = TypeVar("ModelType", bound=Model)


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[ModelType]):
    """Some records of a list."""

    items: tuple[ModelType, ...]
    total: int | None
    """Number of records that meet the conditions, on all pages; only the first page has it."""
    next: str | None
    """Cursor of the next page; None on the last."""


def wire_name(name: str) -> Any:
    """A field whose JSON name is not its own name in camel case."""
    return field(metadata={"wire": name})


def model_field(model: type[Model]) -> Any:
    """A field that holds a model."""
    return field(metadata={"model": model})


def model_list_field(model: type[Model]) -> Any:
    """A field that holds a tuple of models."""
    return field(metadata={"models": model})


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time, with the suffix Z on Python 3.10 too. Raises ValueError."""
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def model_from_json(model: type[ModelType], row: Any) -> ModelType:
    """Raises InvalidResponse if a field is missing or has another type of value."""
    try:
        required, optional = _fields(cast(Any, model))
        values = {name: row[wire] for name, wire, _ in required}
        for name, wire, default in optional:
            values[name] = row.get(wire, default)
        for name, decode in _decoders(cast(Any, model)):
            if values[name] is not None:
                values[name] = decode(values[name])
        return model(facts=row, **values)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidResponse(f"the response is not a {model.__name__}") from None


def models_from_json(model: type[ModelType], rows: Any) -> tuple[ModelType, ...]:
    return tuple(model_from_json(model, row) for row in rows)


def page_from_json(model: type[ModelType], page: Any) -> RecordPage[ModelType]:
    """Raises InvalidResponse."""
    try:
        items = models_from_json(model, page["items"])
        return RecordPage(items, page["total"], page["next"])
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse(f"the response is not a page of {model.__name__}") from None


Fields = tuple[tuple[str, str, Any], ...]
"""Name, JSON name and default of each field."""


@cache
def _fields(model: Any) -> tuple[Fields, Fields]:
    """The required fields and the optional ones."""
    fields = [
        (item.name, item.metadata.get("wire", camel_case(item.name)), item.default)
        for item in dataclasses.fields(model)
        if item.name != "facts"
    ]
    required = tuple(field for field in fields if field[2] is dataclasses.MISSING)
    return required, tuple(field for field in fields if field[2] is not dataclasses.MISSING)


@cache
def _decoders(model: Any) -> tuple[tuple[str, Decode], ...]:
    decoders = ((item.name, _decoder(item)) for item in dataclasses.fields(model))
    return tuple((name, decode) for name, decode in decoders if decode is not None)


def _decoder(item: dataclasses.Field[Any]) -> Decode | None:
    if "model" in item.metadata:
        return lambda value: model_from_json(item.metadata["model"], value)
    if "models" in item.metadata:
        return lambda rows: models_from_json(item.metadata["models"], rows)
    declared = str(item.type)
    if declared.startswith("datetime"):
        return parse_time
    return tuple if declared.startswith("tuple[") else None
