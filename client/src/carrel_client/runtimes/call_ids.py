"""Ids of tool calls, by which a call that is resumed or repeated runs once."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def call_id(run_id: str, tool_call_id: str | None, name: str, arguments: Any) -> str | None:
    """An id that a resumed call has again; ids of models are unique within a response only."""
    if tool_call_id is None:
        return None
    text = json.dumps([run_id, tool_call_id, name, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
