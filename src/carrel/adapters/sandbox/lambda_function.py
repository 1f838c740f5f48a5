"""AWS Lambda function of the lambda provider; entry point `lambda_function.run`.

Upload this file alone. Needs Python 3.11 or newer and nothing else. Give the function a role
without permissions. An instance serves many commands, so each leaves no process and no file in
/tmp.
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
MAX_RESPONSE_BYTES = 5_900_000
MAX_CHANGES = 5_000
SPARE_MILLISECONDS = 6_000
GRACE_SECONDS = 2
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def run(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run one command and return its result, or the reason why it was not run."""
    needed = 1000 * event["seconds"] + SPARE_MILLISECONDS
    if context.get_remaining_time_in_millis() < needed:
        return {"refused": f"the function's timeout is less than {needed} ms"}
    if int(context.memory_limit_in_mb) > event["memoryMb"]:
        memory_mb = context.memory_limit_in_mb
        return {
            "refused": f"the function has {memory_mb} MB of memory; a lower limit is not supported"
        }
    _isolate_process()
    root = tempfile.mkdtemp(dir=TEMPORARY)
    work = os.path.join(root, "work")
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(event["files"])), mode="r:gz") as tar:
            tar.extractall(root, filter="tar")
        before = dict(_list_files(work))
        response = _run_command(event, root)
        if event["look"]:
            response |= _collect_changes(work, before)
        return response
    finally:
        _kill_descendants()
        _empty_directory(TEMPORARY)


def _isolate_process() -> None:
    """Hide this process's environment and adopt orphaned descendants."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _run_command(event: dict[str, Any], root: str) -> dict[str, Any]:
    base_env = {"PATH": PATH, "HOME": f"{root}/home", "TMPDIR": f"{root}/tmp", "LANG": "C.UTF-8"}
    started = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", event["command"]],
        cwd=f"{root}/work",
        env={**event["env"], **base_env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: _apply_limits(event),  # noqa: PLW1509 - no threads exist yet
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out = OutputReader(process.stdout, event["outputBytes"] + 1)
    err = OutputReader(process.stderr, event["outputBytes"] + 1)
    try:
        code, is_timeout = process.wait(event["seconds"]), False
    except subprocess.TimeoutExpired:
        code, is_timeout = 0, True
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    elapsed_ms = int(1000 * (time.monotonic() - started))
    _kill_descendants()
    process.wait()
    return {
        "exitCode": None if is_timeout else 128 - code if code < 0 else code,
        "timedOut": is_timeout,
        "milliseconds": elapsed_ms,
        "stdout": out.base64_content(),
        "stderr": err.base64_content(),
    }


def _apply_limits(event: dict[str, Any]) -> None:
    os.umask(0o022)
    for resource_id, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, event["diskMb"] * 2**20),
        (resource.RLIMIT_NPROC, event["processes"]),
    ):
        _, hard = resource.getrlimit(resource_id)
        effective = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource_id, (effective, effective))


class OutputReader(threading.Thread):
    """Reads a pipe to its end and keeps the first bytes."""

    def __init__(self, pipe: IO[bytes], max_bytes: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._max_bytes, self._content = pipe, max_bytes, bytearray()
        self.start()

    def run(self) -> None:
        while part := os.read(self._pipe.fileno(), 65_536):
            self._content += part[: self._max_bytes - len(self._content)]

    def base64_content(self) -> str:
        self.join(5)
        return base64.b64encode(bytes(self._content)).decode()


def _kill_descendants() -> None:
    """Kill all descendants. Orphans become our children, so none escapes."""
    while children := list(_children()):
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> Iterator[int]:
    own_pid = str(os.getpid())
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # A process name may contain brackets and spaces.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[1].decode() == own_pid:
            yield int(name)


def _empty_directory(directory: str) -> None:
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            for _ in _walk_unlocked(os.fsencode(entry.path)):
                pass
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def _walk_unlocked(top: bytes) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Like os.walk, but makes directories accessible first."""
    os.chmod(top, 0o755)
    for parent, directories, names in os.walk(top):
        for directory in (os.path.join(parent, name) for name in directories):
            if not os.path.islink(directory):
                os.chmod(directory, 0o755)
        yield parent, directories, names


def _list_files(work: str) -> Iterator[tuple[bytes, tuple[bytes, bytes, bytes, bytes, str]]]:
    """Yield each path with type, mode, size, link target and the digest of a file."""
    for parent, directories, names in _walk_unlocked(work.encode()):
        links = [name for name in directories if os.path.islink(os.path.join(parent, name))]
        for name in [*names, *links]:
            yield _describe_file(os.path.join(parent, name), work)


def _describe_file(path: bytes, work: str) -> tuple[bytes, tuple[bytes, bytes, bytes, bytes, str]]:
    status = os.lstat(path)
    name = os.path.relpath(path, work.encode())
    mode = format(stat.S_IMODE(status.st_mode), "o").encode()
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        return name, (b"l", mode, b"%d" % len(target), target, "")
    if not stat.S_ISREG(status.st_mode):
        return name, (_type_letter(status.st_mode), mode, b"0", b"", "")
    os.chmod(path, stat.S_IMODE(status.st_mode) | 0o600)
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return name, (b"f", mode, b"%d" % status.st_size, b"", sha256)


def _type_letter(mode: int) -> bytes:
    return b"p" if stat.S_ISFIFO(mode) else b"s" if stat.S_ISSOCK(mode) else b"c"


def _collect_changes(work: str, before: dict[bytes, Any]) -> dict[str, Any]:
    """Return the listing of all files and an archive of those that changed."""
    current = dict(_list_files(work))
    fields = [
        part
        for name, description in current.items()
        for part in (*description[:3], name, description[3])
    ]
    hashes = [
        f"{description[4]}  ./".encode() + name
        for name, description in current.items()
        if description[4]
    ]
    raw_listing = b"\0".join([*fields, b"hashes", *hashes, b"end", b""])
    listing = base64.b64encode(raw_listing).decode()
    differing = (
        name
        for name, description in current.items()
        if description[4] and before.get(name) != description
    )
    changed = list(filter(_is_path, differing))
    size = sum(int(current[name][2]) for name in changed)
    archive = _pack_files(work, changed) if len(changed) <= MAX_CHANGES else b""
    encoded_archive = base64.b64encode(archive).decode()
    if len(listing) + len(encoded_archive) > MAX_RESPONSE_BYTES:
        return {"tooLarge": size, "mostAnswered": MAX_RESPONSE_BYTES}
    return {"listing": listing, "changes": encoded_archive}


def _is_path(name: bytes) -> bool:
    """Whether a file of this name can be kept; otherwise its bytes are not sent."""
    with suppress(UnicodeDecodeError):
        text = name.decode()
        is_plain = not any(unicodedata.category(letter) == "Cc" for letter in text)
        return is_plain and "\\" not in text
    return False


def _pack_files(work: str, names: list[bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            path = os.path.join(work.encode(), name)
            info = tarfile.TarInfo(os.fsdecode(name))
            info.size = os.lstat(path).st_size
            with open(path, "rb") as file:
                tar.addfile(info, file)
    return buffer.getvalue()
