"""Builds bubblewrap's arguments: mounts, namespaces and environment of a command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from glob import glob
from pathlib import Path as File
from typing import Final

HOME: Final = "/home/agent"
WORKSPACE: Final = "/workspace"
ALIASES: Final = "/run/aliases"
"""Directory of the names that the machine lacks."""
STAGE_CANDIDATES: Final = ("/tmp", "/var/tmp", "/mnt", "/srv", "/media", "/opt")
ENVIRONMENT: Final = {
    "PATH": f"/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:{ALIASES}",
    "HOME": HOME,
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
}
ETC_FILES: Final = {
    "passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:1000:1000::{HOME}:/bin/bash\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
"""Generated files for /etc, so that the machine's users stay hidden."""
SHARED_ETC_PATHS: Final = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "mime.types",
    "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs",
    "java-*-openjdk", "os-release", "debian_version",
)  # fmt: skip
"""Paths and patterns below /etc that commands may read.

No Java program runs without its own, and pip fails where a system's version may not be read.
"""
HIDDEN_DIRECTORIES: Final = ("/usr/etc", "/usr/local/etc")
"""Configuration of package managers, which may hold tokens."""
_SYSTEM_DIRECTORIES: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@cache
def stage_for(program: str) -> str:
    """Return the directory where the launcher mounts the stage.

    The mount hides what is there, so it must not contain the program.
    """
    real = File(program).resolve()
    usable = [
        candidate
        for candidate in STAGE_CANDIDATES
        if os.path.isdir(candidate) and not real.is_relative_to(candidate)
    ]
    return usable[0] if usable else STAGE_CANDIDATES[0]


@cache
def command_aliases() -> Mapping[str, str]:
    """Return programs by the common names that the machine lacks: python for python3."""
    python = shutil.which("python3", path=ENVIRONMENT["PATH"])
    if python is None or shutil.which("python", path=ENVIRONMENT["PATH"]):
        return {}
    return {"python": python}


def shared_etc_paths() -> list[str]:
    """Return the existing paths below /etc that commands may read."""
    return [path for name in SHARED_ETC_PATHS for path in sorted(glob(f"/etc/{name}"))]


def build_arguments(
    stage: str,
    *,
    network: bool,
    own_network: bool = True,
    status: int,
    filter: int,
    args: int,
) -> list[str]:
    """Return all arguments except the command.

    ``own_network`` is False if no network namespace can be created. ``status``, ``filter`` and
    ``args`` are file descriptors.
    """
    unshared = ["user", "pid", "ipc", "uts", "cgroup-try"]
    if own_network and not network:
        unshared.append("net")
    return [
        "bwrap",
        *(f"--unshare-{name}" for name in unshared),
        *("--disable-userns", "--die-with-parent", "--new-session"),
        *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
        *_system_mounts(stage, network=network),
        *("--proc", "/proc", "--dev", "/dev", "--bind", f"{stage}/side/shm", "/dev/shm"),
        *("--bind", f"{stage}/side/tmp", "/tmp", "--bind", f"{stage}/side/home", HOME),
        *("--bind", f"{stage}/workspace", WORKSPACE, "--chdir", WORKSPACE),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--json-status-fd", str(status), "--seccomp", str(filter), "--args", str(args)),
    ]


def setenv_arguments(env: Mapping[str, str]) -> bytes:
    """Return environment variables as further arguments that no process list shows.

    Bubblewrap itself must not run with them: ``LD_PRELOAD`` would load a workspace's library
    outside the sandbox.
    """
    arguments = [
        argument
        for name, value in env.items()
        if name not in ENVIRONMENT
        for argument in ("--setenv", name, value)
    ]
    return "".join(f"{argument}\0" for argument in arguments).encode(errors="surrogateescape")


def _system_mounts(stage: str, *, network: bool) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for directory in filter(os.path.isdir, HIDDEN_DIRECTORIES):
        yield from ("--tmpfs", directory, "--remount-ro", directory)
    for name in _SYSTEM_DIRECTORIES:
        root = File("/", name)
        if root.is_symlink():
            yield from ("--symlink", os.readlink(root), str(root))
        elif root.is_dir():
            yield from ("--ro-bind", str(root), str(root))
    for name, program in command_aliases().items():
        yield from ("--symlink", program, f"{ALIASES}/{name}")
    yield from _etc_mounts(stage)
    if network:
        yield from ("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")


def _etc_mounts(stage: str) -> Iterator[str]:
    for path in shared_etc_paths():
        yield from ("--ro-bind-try", path, path)
    for name in ETC_FILES:
        yield from ("--ro-bind", f"{stage}/etc/{name}", f"/etc/{name}")
