"""A shared workspace as an account describes it. Nothing in it is secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core import field_validation
from carrel.core.errors import ValidationError

STORAGES: Final = ("s3",)
"""What the files are said to be kept in. They lie where all of Carrel's do, whatever that is."""
_ELSEWHERE: Final = ("bucket", "region", "endpoint", "prefix", "auth")


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """All that is known of it; what nobody knows is dropped. Raises Malformed."""
    storage = field_validation.mapping("config.storage", given.get("storage", {}))
    provider = storage.get("provider", "s3")
    found: dict[str, Any] = {
        "storage": {
            "provider": field_validation.one_of("config.storage.provider", provider, STORAGES)
        }
    }
    if named := [name for name in _ELSEWHERE if name in storage]:
        raise ValidationError(
            f"config.storage.{named[0]} is not supported: files are kept with all others"
        )
    if "harness" in given:
        notes = field_validation.mapping("config.harness", given["harness"])
        found["harness"] = {}
        if "enabled" in notes:
            enabled = field_validation.boolean("config.harness.enabled", notes["enabled"])
            found["harness"]["enabled"] = enabled
    return found
