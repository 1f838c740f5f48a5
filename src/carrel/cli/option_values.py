"""Values of options: JSON, documents from files, and texts that are no arguments."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

import click


def parse_json_object(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Click callback that parses a JSON object. Raises BadParameter."""
    if value is None:
        return None
    return parse_object(value)


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises BadParameter."""
    try:
        parsed_value = json.loads(text)
    except (ValueError, RecursionError):
        raise click.BadParameter("invalid JSON") from None
    if not isinstance(parsed_value, dict):
        raise click.BadParameter("must be a JSON object")
    return parsed_value


def read_private_text(file: TextIO | None, prompt: str) -> str:
    """Read a secret from a file, a pipe, or a terminal without echo.

    One line break at its end is not part of it.
    """
    if file is None and sys.stdin.isatty():
        entered: str = click.prompt(prompt, hide_input=True, err=True)
        return entered
    text = (file or sys.stdin).read()
    return text.removesuffix("\n").removesuffix("\r")
