"""Structured log.

structlog imports rich and pygments if installed, for coloured tracebacks that are not used here.
They take a fifth of the server's start time, so rich is hidden while structlog is imported.
"""

from __future__ import annotations

import sys
from typing import Any, cast

__all__ = ["get_logger", "structlog"]

_hide_rich = "rich" not in sys.modules
if _hide_rich:
    sys.modules["rich"] = cast(Any, None)  # makes `import rich` fail
try:
    import structlog
finally:
    if _hide_rich:
        del sys.modules["rich"]


def get_logger(name: str) -> Any:
    """Return the logger of this name: `log.info("message", key=…)`."""
    return structlog.get_logger(name)
