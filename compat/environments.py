"""An environment of each runtime, with its newest versions pinned by digest."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path as File
from typing import Final

ROOT: Final = File(__file__).parents[1]
CACHE: Final = ROOT / ".compat"
RUNTIMES: Final = File(__file__).parent / "runtimes"
UV: Final = str(File(sys.executable).with_name("uv"))
_COMPILE: Final = (
    *("pip", "compile", "--quiet", "--system-certs", "--universal", "--python-version", "3.11"),
    *("--generate-hashes", "--no-emit-index-url", "--no-annotate", "--no-header", "--upgrade"),
    *("--no-emit-package", "carrel-client"),
)
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


class InstallFailed(Exception):
    """An environment could not be resolved or installed; the message has the output."""


def requirements_file(runtime: str) -> File:
    return RUNTIMES / f"{runtime}.in"


def lock_file(runtime: str) -> File:
    return RUNTIMES / f"{runtime}.lock"


def update_lock(runtime: str) -> None:
    """Resolve the newest versions that the requirements allow. Raises InstallFailed."""
    files = (str(requirements_file(runtime)), "--output-file", str(lock_file(runtime)))
    _run(UV, *_COMPILE, *files)


def locked_versions(runtime: str) -> dict[str, str]:
    """The version of every package of a runtime's environment, by normalized name."""
    return parse_lock(lock_file(runtime).read_text("utf-8"))


def parse_lock(text: str) -> dict[str, str]:
    return {normalize(name): version for name, version in _PINNED.findall(text)}


def normalize(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def prepare_environment(runtime: str) -> File:
    """Install the locked packages and the client; return the interpreter.

    Does nothing if they are installed. Raises InstallFailed.
    """
    folder = CACHE / "environments" / runtime
    python, stamp = folder / "bin" / "python", folder / "installed"
    digest = _digest(lock_file(runtime), ROOT / "client" / "pyproject.toml")
    if stamp.exists() and stamp.read_text() == digest:
        return python
    _run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
    install = (UV, "pip", "install", "--quiet", "--system-certs", "--python", str(python))
    _run(*install, "--require-hashes", "-r", str(lock_file(runtime)))
    _run(*install, "--no-deps", "-e", str(ROOT / "client"))
    stamp.write_text(digest)
    return python


def _digest(*files: File) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _run(*command: str) -> None:
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise InstallFailed(f"{_readable(command)}\n{completed.stderr[-4000:]}")


def _readable(command: Sequence[str]) -> str:
    return " ".join(File(command[0]).name if word == command[0] else word for word in command)
