"""The last of ours before a command: a process that builds its walls and becomes it.

It is started as a script by an interpreter without our packages, so that it is up in milliseconds
and holds nothing of the server. What to do it reads from a socket, as a plan of plain values.
"""

from __future__ import annotations

import _socket
import array
import ctypes
import marshal
import os
import resource
import signal
import stat
import sys
from contextlib import suppress
from typing import Any, Final

NEWNS: Final = 0x00020000
NEWUSER: Final = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
PR_SET_DUMPABLE: Final = 4
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
SECCOMP_MODE_FILTER: Final = 2
PR_CAPBSET_DROP: Final = 24
SIGKILL: Final = 9
SHOWN: Final = "/tmp"
"""Where a directory is shown to its user: a place that exists everywhere."""

NS_GET_PARENT: Final = 0xB702
SPACES: Final = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
BENEATH: Final = 1

_libc: Any = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    for fd in sys.argv[1:]:
        os.set_inheritable(int(fd), False)
    server = _socket.socket(fileno=int(sys.argv[1]))
    plan = marshal.loads(_read(server) or os._exit(0))
    try:
        _launch(plan, server)
    except OSError as problem:
        _send(server, b"E" + f"{problem.strerror or problem} ({problem.filename})".encode())
        os._exit(1)


def _launch(plan: dict[str, Any], server: Any) -> None:
    _die_with(plan["parent"])
    _join(plan["cgroups"])
    if plan["enter"]:
        _enter(plan["enter"])
    # It may lie beneath what the stage is going to hide, or where only root may look.
    program = os.open(plan["program"], os.O_PATH | os.O_CLOEXEC)
    if plan["bind"]:
        _bind(plan["bind"])
    if plan["stage"]:
        _stage(plan)
    # Where commands are the same user, none may look into what is not yet, or never, one of them.
    _prctl(PR_SET_DUMPABLE, 0)
    if plan["stage"]:
        staged = os.open(plan["stage"], os.O_RDONLY | os.O_DIRECTORY)
        _send(server, b"S", staged)
        os.close(staged)
    else:
        _send(server, b"S")
    if not _read(server):
        return
    if plan["landlock"]:
        _supervise(plan, server, program)
    elif plan["enter"]:
        _accompany(plan, server, program)
    else:
        _become(plan, program)


def _read(server: Any) -> bytes:
    """One message; nothing where the server is gone."""
    head = _exactly(server, 4)
    return _exactly(server, int.from_bytes(head, "big")) if len(head) == 4 else b""


def _exactly(server: Any, size: int) -> bytes:
    got = b""
    while len(got) < size:
        piece = server.recv(size - len(got))
        if not piece:
            return b""
        got += piece
    return got


def _send(server: Any, message: bytes, fd: int | None = None) -> None:
    rights = (
        [] if fd is None else [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [fd]))]
    )
    server.sendmsg([message], rights)


def _checked(outcome: int, what: str) -> int:
    if outcome < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
    return outcome


def _prctl(option: int, value: int, more: Any = 0) -> None:
    _checked(
        _libc.prctl(option, ctypes.c_ulong(value), more, ctypes.c_ulong(0), ctypes.c_ulong(0)),
        f"prctl {option}",
    )


def _die_with(parent: int) -> None:
    _prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _join(cgroups: list[str]) -> None:
    for directory in cgroups:
        with open(f"{directory}/cgroup.procs", "w") as procs:
            procs.write(str(os.getpid()))


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    given = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags))
    _checked(_libc.mount(*given, options.encode()), f"mounting {kind or source} on {target}")


def _stage(plan: dict[str, Any]) -> None:
    """In a mount namespace of its own: memory of bounded size for all that a command writes."""
    stage, uid, gid = plan["stage"], plan["uid"], plan["gid"]
    if plan["own_user"]:
        _checked(_libc.unshare(NEWUSER | NEWNS), "unsharing the user namespace")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    else:
        _checked(_libc.unshare(NEWNS), "unsharing the mount namespace")
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    lower = os.open(plan["lower"], os.O_PATH) if plan["lower"] else None
    sized = f"size={plan['disk']},nr_inodes={plan['inodes']},mode=0700,uid={uid},gid={gid}"
    _mount("carrel", stage, "tmpfs", MS_NOSUID | MS_NODEV, sized)
    os.mkdir(f"{stage}/side")
    _mount("carrel", f"{stage}/side", "tmpfs", MS_NOSUID | MS_NODEV, sized)
    for name in ("side/tmp", "side/home", "side/shm", "etc", "upper", "work", "workspace", "lower"):
        os.mkdir(f"{stage}/{name}")
        os.chown(f"{stage}/{name}", uid, gid)
        os.chmod(f"{stage}/{name}", 0o1777 if name in {"side/tmp", "side/shm"} else 0o755)
    for name, text in plan["etc"].items():
        _write(f"{stage}/etc/{name}", text)
    if lower is not None:
        _overlay(lower, stage)
        os.close(lower)


def _bind(directory: str) -> None:
    """Show a directory where its user can get at it, though not at those above it."""
    _checked(_libc.unshare(NEWNS), "unsharing the mount namespace")
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    _mount(directory, SHOWN, "", MS_BIND)


def _overlay(lower: int, stage: str) -> None:
    _mount(f"/proc/self/fd/{lower}", f"{stage}/lower", "", MS_BIND)
    _mount("", f"{stage}/lower", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    places = f"lowerdir={stage}/lower,upperdir={stage}/upper,workdir={stage}/work"
    _mount("carrel", f"{stage}/workspace", "overlay", MS_NOSUID | MS_NODEV, places + ",userxattr")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _enter(pid: int) -> None:
    """Step into the namespaces of a process; what is forked from now on lives in its own.

    They belong to the user namespace above the one that it runs in, so that one is entered first.
    """
    if os.getuid() == 0:
        os.setgroups([])
    spaces = f"/proc/{pid}/ns"
    inner = os.open(f"{spaces}/user", os.O_RDONLY | os.O_CLOEXEC)
    others = [os.open(f"{spaces}/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in SPACES]
    above = _checked(_libc.ioctl(inner, NS_GET_PARENT), "looking for the namespace above")
    for fd in (above, *others, inner):
        _checked(_libc.setns(fd, 0), "entering a namespace")
        os.close(fd)


def _accompany(plan: dict[str, Any], server: Any, program: int) -> None:
    """Wait for a command in namespaces that others live in, and end as it has ended."""
    first = os.fork()
    if first == 0:
        plan["parent"] = 0  # which is not in its namespace
        os.setsid()
        for capability in range(64):  # a user namespace gives all of them; exec keeps none anyway
            _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
        _become(plan, program)
    server.close()
    os.close(1)
    os.close(2)
    _, status = os.waitpid(first, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _supervise(plan: dict[str, Any], server: Any, program: int) -> None:
    """Stay beside a command that has no namespace of its own: none of its processes outlives it.

    Whatever loses its parent becomes ours, so that all of them can be found.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: _end_all(137))
    first = os.fork()
    if first == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        plan["parent"] = os.getppid()
        _become(plan, program)
    server.close()
    os.close(1)
    os.close(2)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != plan["parent"]:
        _end_all(137)
    while True:
        pid, status = os.wait()
        if pid == first:
            code = os.waitstatus_to_exitcode(status)
            _end_all(128 - code if code < 0 else code)


def _end_all(code: int) -> None:
    while True:
        for pid in _children(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(code)


def _children(pid: int) -> list[int]:
    """A process's children and theirs."""
    found: list[int] = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listed:
            found = [int(each) for each in listed.read().split()]
    except OSError:
        return []
    return found + [deeper for each in found for deeper in _children(each)]


def _become(plan: dict[str, Any], program: int) -> None:
    for name, most in plan["limits"].items():
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (bound, bound))
    directory = os.open(plan["directory"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if plan["drop"]:
        if not plan["enter"]:  # where they are given up already, and nobody may change them
            os.setgroups([])
        os.setresgid(plan["gid"], plan["gid"], plan["gid"])
        os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    _die_with(plan["parent"])
    os.fchdir(directory)
    for fd in plan["keep"]:
        os.set_inheritable(fd, True)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if plan["landlock"]:
        os.setsid()
        _landlock(plan["landlock"])
    if plan["seccomp"]:
        _seccomp(plan["seccomp"])
    os.execve(program, plan["argv"], plan["env"])


def _landlock(rules: dict[str, Any]) -> None:
    handled = (ctypes.c_uint64 * 3)(rules["files"], rules["network"], rules["scopes"])
    size = ctypes.c_size_t(24 if rules["abi"] >= 6 else 16)
    ruleset = _checked(
        _libc.syscall(LANDLOCK_CREATE, ctypes.byref(handled), size, ctypes.c_uint32(0)), "landlock"
    )
    for path, allowed in rules["beneath"]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fit = allowed if stat.S_ISDIR(os.fstat(fd).st_mode) else allowed & rules["of_files"]
        rule = (ctypes.c_byte * 12)()
        ctypes.memmove(rule, fit.to_bytes(8, sys.byteorder) + fd.to_bytes(4, sys.byteorder), 12)
        given = (ctypes.c_int(ruleset), ctypes.c_int(BENEATH), ctypes.byref(rule))
        _checked(_libc.syscall(LANDLOCK_ADD, *given, ctypes.c_uint32(0)), f"landlock for {path}")
        os.close(fd)
    _checked(
        _libc.syscall(LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)), "landlock"
    )
    os.close(ruleset)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _seccomp(filter: bytes) -> None:
    steps = ctypes.create_string_buffer(filter, len(filter))
    program = _Program(len(filter) // 8, ctypes.cast(steps, ctypes.c_void_p))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))


if __name__ == "__main__":
    main()
