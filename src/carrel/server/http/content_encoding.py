"""Contents in JSON: text, or bytes as base64."""

from __future__ import annotations

import binascii
from typing import Final

from carrel.core.errors import ValidationError

BASE64: Final = "base64"


def decode_content(text: str, encoding: str) -> bytes:
    """Bytes of a content in this encoding, or as UTF-8. Raises ValidationError."""
    try:
        if encoding == BASE64:
            return binascii.a2b_base64(text, strict_mode=True)
        return text.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    except ValueError:
        raise ValidationError("content is not base64") from None
