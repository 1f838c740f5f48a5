"""Token counts by a real tokenizer, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

import pytest

from carrel.adapters.tokenizers.estimate import EstimateTokens
from carrel.adapters.tokenizers.splintr import _MAX_CACHED_COUNTS, SplintrTokens
from carrel.settings import SettingsError, load
from carrel.wiring.ports import open_ports

pytestmark = pytest.mark.anyio


async def test_tokenizer_counts_each_text() -> None:
    tokens = SplintrTokens()
    assert await tokens.count(["hello world", "", "hello world", "<|endoftext|>"]) == (2, 0, 2, 7)
    assert await tokens.count([]) == ()


async def test_counts_are_cached_within_a_limit() -> None:
    tokens = SplintrTokens("cl100k_base")
    first = await tokens.count(["tokenizer"])
    assert await tokens.count(["tokenizer"]) == first
    many = [f"word {n}" for n in range(_MAX_CACHED_COUNTS + 10)]
    assert len(await tokens.count(many)) == len(many)
    assert len(tokens._counts) == _MAX_CACHED_COUNTS


async def test_concurrent_counts_are_correct() -> None:
    tokens = SplintrTokens()
    counts = await asyncio.gather(*(tokens.count([f"x {n % 3}"]) for n in range(32)))
    assert len(set(counts)) == 1


async def test_an_estimate_is_a_quarter_of_the_bytes() -> None:
    assert await EstimateTokens().count(["", "a", "abcd", "ääää"]) == (0, 1, 1, 2)


@pytest.mark.parametrize(
    ("setting", "name"), [("", "o200k_base"), ("llama3", "llama3"), ("estimate", "estimate")]
)
async def test_setting_chooses_the_tokenizer(setting: str, name: str, tmp_path: File) -> None:
    async with open_ports(_settings(tmp_path, tokenizer=setting)) as opened:
        assert opened.ports.tokenizer.name == name


async def test_unknown_tokenizer_is_refused_at_startup(tmp_path: File) -> None:
    with pytest.raises(SettingsError, match="CARREL_TOKENIZER: Unknown pretrained model: unknown"):
        async with open_ports(_settings(tmp_path, tokenizer="unknown")):
            pass


def _settings(directory: File, **overrides: Any) -> Any:
    values: Mapping[str, Any] = {"data": str(directory), **overrides}
    return load(values, environ={}, file=File("no such file"))
