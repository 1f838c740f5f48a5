"""Pin sets: initial pins that agents with the same guardrails share.

The scope is named by the hash of its content and never changes. An agent gets entries of its own
with its first review or override; they take precedence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.commit import Expect, Write, expect_unchanged
from carrel.core.store.entry import Entry
from carrel.core.store.tree import Tree


def pin_set_scope(tenant: str, pins: Mapping[Path, Entry]) -> Scope:
    """Scope of these pins; equal pins have the same scope."""
    lines = [f"{path}\0{pins[path].blob.digest}\0{pins[path].type}" for path in sorted(pins)]
    return Scope(tenant, ScopeKind.PINS, hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32])


def plan_missing_pins(
    tree: Tree, pins: Mapping[Path, Entry]
) -> tuple[tuple[Write, ...], tuple[Expect, ...]]:
    """Writes for the pins that the set lacks, and the expectations for them."""
    absent = [path for path in sorted(pins) if tree.entry(path) is None]
    writes = tuple(Write(tree.scope, path, pins[path]) for path in absent)
    return writes, tuple(expect_unchanged(tree, path) for path in absent)
