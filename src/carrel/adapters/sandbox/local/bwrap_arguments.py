"""What a command sees inside bubblewrap, as its arguments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path as File
from typing import Final

HOME: Final = "/home/agent"
WORKSPACE: Final = "/workspace"
STAGES: Final = ("/tmp", "/var/tmp", "/mnt", "/srv", "/media", "/opt")
ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME": HOME,
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
}
ETC: Final = {
    "passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:1000:1000::{HOME}:/bin/bash\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
"""Files of our own making, so that nothing is told of who lives on this machine."""
LENT: Final = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "mime.types",
    "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs",
)  # fmt: skip
_ROOTS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@cache
def stage_for(program: str) -> str:
    """Where the launcher puts the directories that are bound here: what lies there is hidden then,
    so it is not where the program and its libraries are.
    """
    real = File(program).resolve()
    free = [one for one in STAGES if os.path.isdir(one) and not real.is_relative_to(one)]
    return free[0] if free else STAGES[0]


def arguments(
    stage: str,
    *,
    network: bool,
    own_network: bool = True,
    status: int,
    filter: int,
    given: int,
) -> list[str]:
    """All but the command. ``own_network`` is False where no namespace for one can be had."""
    unshared = ["user", "pid", "ipc", "uts", "cgroup-try"]
    if own_network and not network:
        unshared.append("net")
    return [
        "bwrap",
        *(f"--unshare-{name}" for name in unshared),
        *("--disable-userns", "--die-with-parent", "--new-session"),
        *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
        *_system(stage, network=network),
        *("--proc", "/proc", "--dev", "/dev", "--bind", f"{stage}/side/shm", "/dev/shm"),
        *("--bind", f"{stage}/side/tmp", "/tmp", "--bind", f"{stage}/side/home", HOME),
        *("--bind", f"{stage}/workspace", WORKSPACE, "--chdir", WORKSPACE),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--json-status-fd", str(status), "--seccomp", str(filter), "--args", str(given)),
    ]


def variables(env: Mapping[str, str]) -> bytes:
    """Those of a command, as further arguments that no list of processes shows.

    Bubblewrap itself must not have them: by some of them (``LD_PRELOAD``) a linker takes in what
    a workspace holds, and that would be before there are any walls.
    """
    words = [
        word
        for name, value in env.items()
        if name not in ENVIRONMENT
        for word in ("--setenv", name, value)
    ]
    return "".join(f"{word}\0" for word in words).encode(errors="surrogateescape")


def _system(stage: str, *, network: bool) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _ROOTS:
        root = File("/", name)
        if root.is_symlink():
            yield from ("--symlink", os.readlink(root), str(root))
        elif root.is_dir():
            yield from ("--ro-bind", str(root), str(root))
    for name in LENT:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in ETC:
        yield from ("--ro-bind", f"{stage}/etc/{name}", f"/etc/{name}")
    if network:
        yield from ("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
