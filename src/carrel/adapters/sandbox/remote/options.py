"""What a sandbox's record may say of its own: one of what the operator allows, nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from carrel.ports.sandbox import CommandSpec, ResourceLimits, SandboxUnavailable

_UNFIT: Final = re.compile("[^a-z0-9]+")


def choose_option(order: CommandSpec, key: str, allowed: Sequence[str]) -> str:
    """The one that an order's options name, or the first. Raises Refused."""
    unknown = sorted(order.options.keys() - {key})
    if unknown:
        raise SandboxUnavailable(f"this provider has no option {unknown[0][:40]!a}")
    named = order.options.get(key, allowed[0])
    if named not in allowed:
        raise SandboxUnavailable(f"options.{key} must be one of: {', '.join(allowed)}")
    return str(named)


def no_options(options: Mapping[str, Any]) -> None:
    if options:
        raise SandboxUnavailable(f"this provider has no option {sorted(options)[0][:40]!a}")


def refuse_persistent(provider: str, persistent: bool) -> str | None:
    return f"{provider} keeps no instance between commands here" if persistent else None


def too_much_memory(provider: str, has: int, bounds: ResourceLimits) -> str | None:
    """A bound that is no less than what a machine has is kept by the machine; a lower one is not.

    Where there are many machines of one size, nobody can make one smaller.
    """
    if has <= bounds.memory_mb:
        return None
    return f"{provider} has {has} MB of memory for each command and cannot keep it to less"


def named(order: CommandSpec) -> str:
    """A name for what is made for an order, as every provider takes one."""
    return f"carrel-{_UNFIT.sub('-', order.id.lower()).strip('-')[:48] or 'order'}"
