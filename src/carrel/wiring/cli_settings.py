"""The settings that a command is given, and why it cannot go on with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.settings import Settings, SettingsError, load


class StoreUnavailable(Exception):
    """There is no store to be had by these settings; the message says why."""


def load_settings(given: Mapping[str, Any]) -> Settings:
    """What is given, over the settings around. Raises Unopenable."""
    try:
        return load(given)
    except SettingsError as problem:
        raise StoreUnavailable(str(problem)) from problem
