"""The lines of a file that an agent asked to read."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from deepagents.backends.protocol import FileData, ReadResult

MAX_BINARY_BYTES: Final = 500 * 1024


def read_window(name: str, content: bytes, offset: int, limit: int) -> ReadResult:
    """The requested lines; a file that is not text whole, unless it is too large."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _binary(name, content)
    start, count = max(0, int(offset)), max(0, int(limit))
    if not text.strip():
        return ReadResult(file_data=FileData(content=text, encoding="utf-8"))
    if count == 0:
        data = FileData(content="", encoding="utf-8")
        return ReadResult(file_data=data, no_lines_requested=True)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    has_final_newline = lines[-1] == ""
    total = len(lines) - has_final_newline
    if start >= total:
        return ReadResult(error=f"Line offset {start} exceeds file length ({total} lines)")
    end = min(start + count, total)
    window = "\n".join(lines[start:end])
    if end == total and has_final_newline:
        window += "\n"
    return ReadResult(
        file_data=FileData(content=window, encoding="utf-8"),
        total_lines=total,
        start_line=start + 1,
        end_line=end,
        next_offset=end if end < total else None,
    )


def _binary(name: str, content: bytes) -> ReadResult:
    if len(content) > MAX_BINARY_BYTES:
        limit = f"maximum preview size of {MAX_BINARY_BYTES} bytes"
        return ReadResult(error=f"File '{name}': Binary file exceeds {limit}")
    data = FileData(content=b64encode(content).decode("ascii"), encoding="base64")
    return ReadResult(file_data=data)
