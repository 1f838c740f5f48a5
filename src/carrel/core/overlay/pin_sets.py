"""Pins that many agents share: what each was given as reviewed when it was made.

Agents that are made from the same guardrails would each keep the same few entries. So those stand
once, in a scope that is named after what it says and therefore never changes; an agent has entries
of its own only from its first review or override on, and they go before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.tree import Entry, Expect, Tree, Write, expect_unchanged


def pinset_of(tenant: str, pins: Mapping[Path, Entry]) -> Scope:
    """Where these pins stand: the same for all who have the same."""
    lines = [f"{path}\0{pins[path].blob.digest}\0{pins[path].type}" for path in sorted(pins)]
    return Scope(tenant, ScopeKind.PINS, hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32])


def missing(
    known: Tree, pins: Mapping[Path, Entry]
) -> tuple[tuple[Write, ...], tuple[Expect, ...]]:
    """What is still to be written of a set, and the expectation that nobody else has."""
    absent = [path for path in sorted(pins) if known.entry(path) is None]
    writes = tuple(Write(known.scope, path, pins[path]) for path in absent)
    return writes, tuple(expect_unchanged(known, path) for path in absent)
