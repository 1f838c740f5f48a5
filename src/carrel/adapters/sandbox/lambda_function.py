"""What runs in AWS: upload this file alone as a function with the entry `lambda_function.run`.

It needs Python 3.11 or newer and nothing else. Give the function a role without permissions. An
instance serves one command after another, so nothing of one is left for the next: no process, no
file in /tmp.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import io
import os
import resource
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

TEMPORARY = "/tmp"
PATH = "/var/lang/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"
MOST_ANSWERED = 5_900_000
MOST_CHANGES = 5_000
SPARE_MILLISECONDS = 6_000
GRACE_SECONDS = 2
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def run(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run one command and tell what came of it, or why it was not run."""
    needed = 1000 * event["seconds"] + SPARE_MILLISECONDS
    if context.get_remaining_time_in_millis() < needed:
        return {"refused": f"the function's own time-out is less than {needed} ms"}
    if int(context.memory_limit_in_mb) > event["memoryMb"]:
        has = context.memory_limit_in_mb
        return {"refused": f"the function has {has} MB of memory and cannot keep it to less"}
    _guard()
    root = tempfile.mkdtemp(dir=TEMPORARY)
    work = os.path.join(root, "work")
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(event["files"])), mode="r:gz") as tar:
            tar.extractall(root, filter="tar")
        before = dict(_listed(work))
        answer = _ran(event, root)
        if event["look"]:
            answer |= _left(work, before)
        return answer
    finally:
        _end_all()
        _empty(TEMPORARY)


def _guard() -> None:
    """Nobody may read this process's variables, and what loses its parent becomes our child."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _ran(event: dict[str, Any], root: str) -> dict[str, Any]:
    own = {"PATH": PATH, "HOME": f"{root}/home", "TMPDIR": f"{root}/tmp", "LANG": "C.UTF-8"}
    began = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", event["command"]],
        cwd=f"{root}/work",
        env={**event["env"], **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: _bind(event),  # noqa: PLW1509 - there are no threads yet
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out = OutputReader(process.stdout, event["outputBytes"] + 1)
    err = OutputReader(process.stderr, event["outputBytes"] + 1)
    try:
        code, is_late = process.wait(event["seconds"]), False
    except subprocess.TimeoutExpired:
        code, is_late = 0, True
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    took = int(1000 * (time.monotonic() - began))
    _end_all()
    process.wait()
    return {
        "exitCode": None if is_late else 128 - code if code < 0 else code,
        "timedOut": is_late,
        "milliseconds": took,
        "stdout": out.whole(),
        "stderr": err.whole(),
    }


def _bind(event: dict[str, Any]) -> None:
    os.umask(0o022)
    for bound, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, event["diskMb"] * 2**20),
        (resource.RLIMIT_NPROC, event["processes"]),
    ):
        _, hard = resource.getrlimit(bound)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(bound, (least, least))


class OutputReader(threading.Thread):
    """Reads to the end and keeps the beginning."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._most, self._kept = pipe, most, bytearray()
        self.start()

    def run(self) -> None:
        while part := os.read(self._pipe.fileno(), 65_536):
            self._kept += part[: self._most - len(self._kept)]

    def whole(self) -> str:
        self.join(5)
        return base64.b64encode(bytes(self._kept)).decode()


def _end_all() -> None:
    """Kill all descendants; those of a killed one become ours, so that none gets away."""
    while children := list(_children()):
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> Iterator[int]:
    me = str(os.getpid())
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # A process may call itself anything, brackets and spaces included.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[1].decode() == me:
            yield int(name)


def _empty(directory: str) -> None:
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            for _ in _walked(os.fsencode(entry.path)):
                pass
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def _walked(top: bytes) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Like os.walk, also into directories that a command has locked: each is opened before."""
    os.chmod(top, 0o755)
    for place, rooms, names in os.walk(top):
        for room in (os.path.join(place, name) for name in rooms):
            if not os.path.islink(room):
                os.chmod(room, 0o755)
        yield place, rooms, names


def _listed(work: str) -> Iterator[tuple[bytes, tuple[bytes, bytes, bytes, bytes, str]]]:
    """Every path with its type, mode, size, where it points to, and its digest if it is a file."""
    for place, rooms, names in _walked(work.encode()):
        index_keys = [name for name in rooms if os.path.islink(os.path.join(place, name))]
        for name in [*names, *index_keys]:
            yield _fields(os.path.join(place, name), work)


def _fields(path: bytes, work: str) -> tuple[bytes, tuple[bytes, bytes, bytes, bytes, str]]:
    facts = os.lstat(path)
    name = os.path.relpath(path, work.encode())
    mode = format(stat.S_IMODE(facts.st_mode), "o").encode()
    if stat.S_ISLNK(facts.st_mode):
        target = os.readlink(path)
        return name, (b"l", mode, b"%d" % len(target), target, "")
    if not stat.S_ISREG(facts.st_mode):
        return name, (_letter(facts.st_mode), mode, b"0", b"", "")
    os.chmod(path, stat.S_IMODE(facts.st_mode) | 0o600)
    with open(path, "rb") as file:
        hashed = hashlib.file_digest(file, "sha256").hexdigest()
    return name, (b"f", mode, b"%d" % facts.st_size, b"", hashed)


def _letter(mode: int) -> bytes:
    return b"p" if stat.S_ISFIFO(mode) else b"s" if stat.S_ISSOCK(mode) else b"c"


def _left(work: str, before: dict[bytes, Any]) -> dict[str, Any]:
    """The listing of all that is there, and the bytes of the files that are other than before."""
    now = dict(_listed(work))
    fields = [part for name, facts in now.items() for part in (*facts[:3], name, facts[3])]
    hashes = [f"{facts[4]}  ./".encode() + name for name, facts in now.items() if facts[4]]
    whole = b"\0".join([*fields, b"hashes", *hashes, b"end", b""])
    listing = base64.b64encode(whole).decode()
    differing = (name for name, facts in now.items() if facts[4] and before.get(name) != facts)
    changed = list(filter(_is_path, differing))
    size = sum(int(now[name][2]) for name in changed)
    parcel = _packed(work, changed) if len(changed) <= MOST_CHANGES else b""
    answered = base64.b64encode(parcel).decode()
    if len(listing) + len(answered) > MOST_ANSWERED:
        return {"tooLarge": size, "mostAnswered": MOST_ANSWERED}
    return {"listing": listing, "changes": answered}


def _is_path(name: bytes) -> bool:
    """Whether a file can be kept by this name; if not, its bytes need not travel."""
    with suppress(UnicodeDecodeError):
        text = name.decode()
        is_plain = not any(unicodedata.category(letter) == "Cc" for letter in text)
        return is_plain and "\\" not in text
    return False


def _packed(work: str, names: list[bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            path = os.path.join(work.encode(), name)
            head = tarfile.TarInfo(os.fsdecode(name))
            head.size = os.lstat(path).st_size
            with open(path, "rb") as file:
                tar.addfile(head, file)
    return whole.getvalue()
