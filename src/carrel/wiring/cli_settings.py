"""The settings that a command is given, and why it cannot go on with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.settings import Settings, Unusable, load


class Unopenable(Exception):
    """There is no store to be had by these settings; the message says why."""


def settings_by(given: Mapping[str, Any]) -> Settings:
    """What is given, over the settings around. Raises Unopenable."""
    try:
        return load(given)
    except Unusable as problem:
        raise Unopenable(str(problem)) from problem
