"""Sizes of the prompts of runs, as tallies count them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from carrel.core.fleet.tallies import SEPARATOR, Tally
from carrel.core.identifiers import ScopeKind
from carrel.core.runs import Run

_RUNS, _TOKENS, _STABLE, _BLOCK = "runs", "tokens", "stable", "block:"
_OTHER: Final = "OTHER"
BLOCK_NAMES: Final = (
    *("PLATFORM", "GUARDRAILS", "CAPABILITIES", "IDENTITY", "SOUL", "USER", "AGENTS", "SKILLS"),
    *("RECENT NOTES", "MEMORY", "WORKSPACES", _OTHER),
)
"""Blocks that are counted by name, in the order of a prompt; others are counted together."""
_VOLATILE: Final = frozenset({"RECENT NOTES", "MEMORY", "WORKSPACES"})
"""Blocks that change between runs: a provider's cache holds what is before them."""


class PromptTotals(Struct, frozen=True):
    """Sums over the prompts of runs."""

    runs: int
    tokens: int
    stable: int
    """Tokens before the first block that changes between runs."""
    blocks: Mapping[str, int]
    """Tokens by block."""


def prompt_sizes(run: Run, blocks: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """Values to count for the prompt of a run, from the name and tokens of each block."""
    template = next(
        (layer.scope.name for layer in run.snapshot if layer.scope.kind is ScopeKind.TEMPLATE), ""
    )
    values = Counter({_RUNS: 1})
    is_stable = True
    for name, tokens in blocks:
        is_stable = is_stable and not (tokens and name in _VOLATILE)
        values[_TOKENS] += tokens
        values[_STABLE] += tokens * is_stable
        values[_BLOCK + (name if name in BLOCK_NAMES else _OTHER)] += tokens
    return {f"{template}{SEPARATOR}{name}": value for name, value in values.items() if value}


def total_by_template(tallies: Iterable[Tally]) -> Mapping[str | None, PromptTotals]:
    return _totals((tally.key.partition(SEPARATOR)[0] or None, tally) for tally in tallies)


def total_by_day(tallies: Iterable[Tally]) -> Mapping[str | None, PromptTotals]:
    return _totals((tally.name, tally) for tally in tallies)


def _totals(tallies: Iterable[tuple[str | None, Tally]]) -> Mapping[str | None, PromptTotals]:
    values = defaultdict[str | None, Counter[str]](Counter)
    for group, tally in tallies:
        values[group][tally.key.partition(SEPARATOR)[2]] += tally.value
    return {
        group: PromptTotals(
            counts[_RUNS],
            counts[_TOKENS],
            counts[_STABLE],
            {name: counts[_BLOCK + name] for name in BLOCK_NAMES if counts[_BLOCK + name]},
        )
        for group, counts in values.items()
    }
