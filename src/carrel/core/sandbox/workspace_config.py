"""Validation of shared workspace configurations. They contain no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core import field_validation
from carrel.core.errors import ValidationError

STORAGE_PROVIDERS: Final = ("s3",)
"""Accepted for compatibility; files are always kept in Carrel's own store."""
_UNSUPPORTED_STORAGE_FIELDS: Final = ("bucket", "region", "endpoint", "prefix", "auth")


def parse_workspace_config(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a config; unknown fields are dropped. Raises ValidationError."""
    storage = field_validation.require_mapping("config.storage", raw.get("storage", {}))
    provider = storage.get("provider", "s3")
    config: dict[str, Any] = {
        "storage": {
            "provider": field_validation.require_choice(
                "config.storage.provider", provider, STORAGE_PROVIDERS
            )
        }
    }
    if unsupported := [name for name in _UNSUPPORTED_STORAGE_FIELDS if name in storage]:
        raise ValidationError(
            f"config.storage.{unsupported[0]} is not supported: custom storage is not available"
        )
    if "harness" in raw:
        notes = field_validation.require_mapping("config.harness", raw["harness"])
        config["harness"] = {}
        if "enabled" in notes:
            enabled = field_validation.require_boolean("config.harness.enabled", notes["enabled"])
            config["harness"]["enabled"] = enabled
    return config
