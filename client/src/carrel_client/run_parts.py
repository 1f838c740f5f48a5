"""Parts of a run that are returned with its start: files, prompt and tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel_client.errors import InvalidResponse
from carrel_client.file_models import FileRow, row_from_json
from carrel_client.prompts import Prompt, prompt_from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """Parts that were returned when a run started; None if not requested or not modified."""

    etag: str
    """ETag of all parts, for the next start."""
    etags: Mapping[str, str]
    """ETag of each part."""
    not_modified: bool
    """Whether all parts were omitted, since the caller has them."""
    files: tuple[FileRow, ...] | None
    """The frozen files; a `File` where the content is text."""
    prompt: Prompt | None
    tools: tuple[Mapping[str, Any], ...] | None
    """The tools in the requested format."""


def parts_from_json(body: Mapping[str, Any]) -> RunParts:
    """Raises InvalidResponse."""
    try:
        return RunParts(
            etag=str(body["etag"]),
            etags=dict(body["etags"]),
            not_modified=bool(body["notModified"]),
            files=tuple(map(row_from_json, body["files"])) if "files" in body else None,
            prompt=prompt_from_json(body["prompt"]) if "prompt" in body else None,
            tools=tuple(map(dict, body["tools"])) if "tools" in body else None,
        )
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse("the response has no parts of a run") from None
