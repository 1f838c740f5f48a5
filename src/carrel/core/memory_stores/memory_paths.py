"""Paths of memories: a file's path after a slash, within narrower limits."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.files.file_kinds import content_type
from carrel.core.identifiers import MAX_PATH_BYTES, Path
from carrel.core.store.entry import Head

MAX_CONTENT_BYTES: Final = 102_400
_MAX_SEGMENTS: Final = 20
_TEXT_TYPE: Final = re.compile(r"text/.+|application/(.+\+)?(json|yaml|xml)")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp"})


def parse_memory_path(text: str) -> Path:
    """Parse the path of a memory. Raises ValidationError."""
    if not text.startswith("/"):
        raise ValidationError("path must start with /")
    if problem := _path_problem(text):
        raise ValidationError(f"path {problem}")
    return Path(text[1:])


def memory_path(path: Path) -> str:
    return f"/{path.text}"


def parse_path_prefix(text: str | None) -> str:
    """Return the prefix of paths of files; empty for all. Raises ValidationError."""
    if text is None:
        return ""
    if not (text.startswith("/") and text.endswith("/")):
        raise ValidationError("path_prefix must start and end with /")
    return text[1:]


def is_memory(head: Head) -> bool:
    """Whether a file is a memory: of text, not too large, at a valid path."""
    entry = head.entry
    return (
        entry is not None
        and entry.blob.size <= MAX_CONTENT_BYTES
        and _TEXT_TYPE.fullmatch(content_type(entry.type)) is not None
        and _path_problem(memory_path(head.path)) is None
    )


def _path_problem(text: str) -> str | None:
    if text.isascii() and text.isprintable():
        is_too_long = len(text) > MAX_PATH_BYTES
    else:
        if any(unicodedata.category(character) in _INVISIBLE for character in text):
            return "contains a control, format or separator character"
        if not unicodedata.is_normalized("NFC", text):
            return "must be in Unicode Normalization Form C"
        is_too_long = len(text.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES
    if is_too_long:
        return f"must not be longer than {MAX_PATH_BYTES} bytes"
    return f"must have 1 to {_MAX_SEGMENTS} segments" if text.count("/") > _MAX_SEGMENTS else None
