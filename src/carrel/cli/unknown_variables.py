"""Variables of the environment that look like settings and are none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from carrel.settings import PREFIX, Settings, environment_names

_OTHER_NAMES: Final = {f"{PREFIX}CONFIG", f"{PREFIX}SKILLS"}
_TEST_PREFIX: Final = f"{PREFIX}TEST_"


def unknown_variables(names: Iterable[str] | None = None) -> list[tuple[str, str | None]]:
    """Variables that name no setting, each with the setting of a similar name."""
    settings = {PREFIX + name.upper() for name in Settings.__struct_fields__} | _OTHER_NAMES
    return [
        (name, next(iter(difflib.get_close_matches(name, settings, 1, 0.75)), None))
        for name in (environment_names() if names is None else names)
        if name not in settings and not name.startswith(_TEST_PREFIX)
    ]
