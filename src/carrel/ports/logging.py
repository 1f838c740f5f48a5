"""The log that operators read.

structlog loads rich and pygments when it finds them, for tracebacks in colour that nobody here
prints. They take a fifth of a server's start, so it is kept from finding them.
"""

from __future__ import annotations

import sys
from typing import Any, cast

__all__ = ["log_of", "structlog"]

_absent = "rich" not in sys.modules
if _absent:
    sys.modules["rich"] = cast(Any, None)  # which is how Python says that there is none
try:
    import structlog
finally:
    if _absent:
        del sys.modules["rich"]


def log_of(name: str) -> Any:
    """Who writes under this name: ``log.info("what happened", fact=…)``."""
    return structlog.get_logger(name)
