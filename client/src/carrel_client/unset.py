"""The default of arguments that leave a field as it is, where None clears it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from carrel_client.models import camel_case


class Unset(Enum):
    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


def patch_body(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set, by their JSON names."""
    return {camel_case(name): value for name, value in fields.items() if value is not UNSET}
