"""httpx, imported without its command line and used without needless TLS setup.

httpx imports rich and pygments for its own command line when they are installed, and reads all
certificate authorities for every client, even for plain HTTP.
"""

from __future__ import annotations

import ssl
import sys
from typing import Any, cast

__all__ = ["httpx", "tls_verify"]

_COMMAND_LINE = "httpx._main"
_is_first_import = "httpx" not in sys.modules
if _is_first_import:
    sys.modules[_COMMAND_LINE] = cast(Any, None)  # Makes its import fail.
try:
    import httpx
finally:
    if _is_first_import:
        del sys.modules[_COMMAND_LINE]


def tls_verify(url: str) -> ssl.SSLContext | bool:
    """The ``verify`` of httpx: for plain HTTP a context without any authority."""
    is_plain = url.lower().startswith("http://")
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True
