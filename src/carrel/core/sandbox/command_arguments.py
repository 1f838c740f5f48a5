"""Arguments of one command beside its text: time limit, environment and directory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from carrel.core.errors import Forbidden, ValidationError

HIDDEN_VALUE: Final = "[hidden]"
"""Shown for the value of a variable where nobody decides about the call."""
_MAX_VARIABLES: Final = 64
_MAX_ENVIRONMENT_BYTES: Final = 32 * 1024
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FIXED_NAMES: Final = frozenset({"PATH", "HOME", "TMPDIR", "LANG"})


def check_environment(env: Mapping[str, str], sandbox_env: Mapping[str, str]) -> None:
    """Check variables of a call. Raises ValidationError, Forbidden for one of the sandbox."""
    if len(env) > _MAX_VARIABLES:
        raise ValidationError(f"env may have {_MAX_VARIABLES} variables")
    size = sum(len(f"{name}{value}".encode(errors="surrogatepass")) for name, value in env.items())
    if size > _MAX_ENVIRONMENT_BYTES:
        raise ValidationError(f"env may have {_MAX_ENVIRONMENT_BYTES} bytes")
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            raise ValidationError(f"env: {name[:80]!a} is not a name of a variable")
        if name in _FIXED_NAMES or name in sandbox_env:
            raise Forbidden(f"env: {name} is set by the sandbox")
        try:
            is_text = "\0" not in value and value.encode() is not None
        except UnicodeEncodeError:
            is_text = False
        if not is_text:
            raise ValidationError(f"env: the value of {name} must be Unicode without NUL")


def check_timeout(seconds: int | None, limit: int) -> int:
    """Time limit of a call in seconds. Raises ValidationError above that of the sandbox."""
    if seconds is None:
        return limit
    if not 1 <= seconds <= limit:
        raise ValidationError(f"timeout must be from 1 to {limit} seconds, the sandbox's limit")
    return seconds


def prepare_command(command: str, directory: str, env: Mapping[str, str], *first_lines: str) -> str:
    """Command that runs in a directory of the workspace, with exported variables."""
    lines = [*first_lines, *(f"export {name}={_quote(value)}" for name, value in env.items())]
    if directory:
        # With "./" neither `-` nor CDPATH has a meaning for cd.
        lines.append(f"cd {_quote(f'./{directory}')} || exit")
    return "\n".join((*lines, command))


def _quote(text: str) -> str:
    """Text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def hide_environment(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments of a call as they are stored, without the values of its variables."""
    env = arguments.get("env")
    if not isinstance(env, Mapping):
        return arguments
    return {**arguments, "env": dict.fromkeys(env, HIDDEN_VALUE)}
