"""Checks of provider options and limits that remote providers share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from carrel.ports.sandbox import CommandSpec, ResourceLimits, SandboxUnavailable

_INVALID_NAME_CHARACTERS: Final = re.compile("[^a-z0-9]+")


def choose_option(spec: CommandSpec, key: str, allowed: Sequence[str]) -> str:
    """Return the option's value or the default. Raises SandboxUnavailable."""
    unknown = sorted(spec.options.keys() - {key})
    if unknown:
        raise SandboxUnavailable(f"this provider has no option {unknown[0][:40]!a}")
    value = spec.options.get(key, allowed[0])
    if value not in allowed:
        raise SandboxUnavailable(f"options.{key} must be one of: {', '.join(allowed)}")
    return str(value)


def refuse_options(options: Mapping[str, Any]) -> None:
    if options:
        raise SandboxUnavailable(f"this provider has no option {sorted(options)[0][:40]!a}")


def refuse_persistent(provider: str, persistent: bool) -> str | None:
    return f"{provider} does not support persistent sandboxes here" if persistent else None


def memory_limit_reason(provider: str, machine_mb: int, limits: ResourceLimits) -> str | None:
    """Return why the memory limit cannot be enforced, or None.

    A machine enforces a limit of at least its own size; a smaller limit is not supported.
    """
    if machine_mb <= limits.memory_mb:
        return None
    return f"{provider} has {machine_mb} MB of memory per command and cannot enforce a lower limit"


def resource_name(spec: CommandSpec) -> str:
    """Return a name for a command's container or pod, valid at every provider."""
    return f"carrel-{_INVALID_NAME_CHARACTERS.sub('-', spec.id.lower()).strip('-')[:48] or 'order'}"
