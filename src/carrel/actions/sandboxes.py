"""Sandboxes: where the commands of agents run, as their account describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.core import hands
from carrel.ports import World
from carrel.ports.sandboxes import Bounds


def opened_env(world: World, sandbox: hands.Sandbox) -> Mapping[str, str]:
    """The variables that a command finds."""
    variables: Mapping[str, str] = sandbox.config.get("envVars", {})
    return variables


def bounds_of(config: Mapping[str, Any]) -> Bounds:
    """What a command may use there."""
    usual = Bounds()
    return Bounds(
        seconds=config.get("timeout", usual.seconds),
        output_bytes=config.get("outputLimitBytes", usual.output_bytes),
        memory_mb=config.get("memoryLimit", usual.memory_mb),
        network=config.get("internet") is True,
    )
