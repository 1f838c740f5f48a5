"""Prompts as the server tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel.client.drivers import HttpRequest, Steps
from carrel.client.errors import InvalidResponse
from carrel.client.requests import get_json


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """What became of one file that could have stood in the prompt."""

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
    """What counted the tokens, or `estimate`."""
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFlaw:
    """Something that is wrong with a prompt or with a file that it is made of."""

    fault: str
    path: str
    text: str


def asked_at(path: str, query: Mapping[str, str] | None = None) -> Steps[Prompt]:
    return prompt_of((yield from get_json(HttpRequest("GET", path, query or {}))))


def prompt_of(told: Any) -> Prompt:
    """Raises Garbled."""
    try:
        facts = {name: told[name] for name in ("text", "chars", "tokens", "tokenizer", "etag")}
        known = PromptBlock.__slots__
        blocks = tuple(PromptBlock(**{name: row[name] for name in known}) for row in told["blocks"])
        return Prompt(**facts, blocks=blocks)
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the answer is no prompt") from None


def flaws_of(told: Any) -> tuple[PromptFlaw, ...]:
    """Raises Garbled."""
    try:
        known = PromptFlaw.__slots__
        return tuple(PromptFlaw(**{name: row[name] for name in known}) for row in told["flaws"])
    except (KeyError, TypeError):
        raise InvalidResponse("the answer is no list of flaws") from None
