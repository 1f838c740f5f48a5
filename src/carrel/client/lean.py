"""httpx without its own command line.

httpx loads rich and pygments for that when it finds them. They take half of the time that a command
of ours needs to begin, so it is kept from finding them.
"""

from __future__ import annotations

import sys
from typing import Any, cast

__all__ = ["httpx"]

_LINE = "httpx._main"
_absent = "httpx" not in sys.modules
if _absent:
    sys.modules[_LINE] = cast(Any, None)  # which is how Python says that there is none
try:
    import httpx
finally:
    if _absent:
        del sys.modules[_LINE]
