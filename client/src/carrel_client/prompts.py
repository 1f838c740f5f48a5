"""System prompts, and the faults of what they are assembled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel_client.drivers import Steps
from carrel_client.errors import InvalidResponse
from carrel_client.requests import get_json


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """One file that was considered for the prompt."""

    name: str
    path: str
    source: str | None
    version: int | None
    chars: int
    tokens: int
    kept: str
    """kept, cut or left out."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    text: str
    blocks: tuple[PromptBlock, ...]
    chars: int
    tokens: int
    tokenizer: str
    """The name of the tokenizer, or ``estimate``."""
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFlaw:
    """A fault of a prompt, or of a file that it is assembled from."""

    fault: str
    path: str
    text: str


def get_prompt(path: str, query: Mapping[str, str] | None = None) -> Steps[Prompt]:
    return prompt_from_json((yield from get_json(path, query)))


def prompt_from_json(body: Any) -> Prompt:
    """Raises InvalidResponse."""
    try:
        values = {name: body[name] for name in ("text", "chars", "tokens", "tokenizer", "etag")}
        return Prompt(
            **values, blocks=tuple(_model_from_row(PromptBlock, row) for row in body["blocks"])
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the response is not a prompt") from None


def get_flaws(path: str) -> Steps[tuple[PromptFlaw, ...]]:
    body = yield from get_json(path)
    try:
        return tuple(_model_from_row(PromptFlaw, row) for row in body["flaws"])
    except (KeyError, TypeError):
        raise InvalidResponse("the response is not a list of flaws") from None


def _model_from_row(model: Any, row: Any) -> Any:
    return model(**{name: row[name] for name in model.__slots__})
