"""httpx without what it loads for nothing at the start of every command of ours.

For a command line of its own it loads rich and pygments when it finds them: it is kept from that.
For every client it reads all the authorities of this machine, even where nothing is encrypted.
"""

from __future__ import annotations

import ssl
import sys
from typing import Any, cast

__all__ = ["httpx", "tls_verify"]

_LINE = "httpx._main"
_absent = "httpx" not in sys.modules
if _absent:
    sys.modules[_LINE] = cast(Any, None)  # which is how Python says that there is none
try:
    import httpx
finally:
    if _absent:
        del sys.modules[_LINE]


def tls_verify(url: str) -> ssl.SSLContext | bool:
    """Whose certificates count: what httpx takes, or nobody's where none should ever be shown."""
    plain = url.lower().startswith("http://")
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True
