"""Removal of one text from everything that a tenant stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel_client.drivers import Steps
from carrel_client.local_directory.atomic_directory import ProgressCallback
from carrel_client.requests import api_path, send_json


def purge_text(
    text: str, dry_run: bool, on_progress: ProgressCallback | None
) -> Steps[Mapping[str, int]]:
    """Purge step by step; return the changes by kind."""
    body: dict[str, Any] = {"text": text, "dryRun": dry_run}
    while True:
        step = yield from send_json("POST", api_path("purge"), body)
        if on_progress is not None:
            on_progress("purging", step["completed"], step["total"])
        if step["cursor"] is None:
            counts: Mapping[str, int] = step["counts"]
            return counts
        body["cursor"] = step["cursor"]
