"""Settings of a CLI command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.settings import Settings, SettingsError, load


class StoreUnavailable(Exception):
    """The store cannot be opened with these settings; the message is the reason."""


def load_settings(overrides: Mapping[str, Any]) -> Settings:
    """Load settings with the given overrides. Raises StoreUnavailable."""
    try:
        return load(overrides)
    except SettingsError as problem:
        raise StoreUnavailable(str(problem)) from problem
