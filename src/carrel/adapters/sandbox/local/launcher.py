"""Launcher script, the child's side: sets user, limits, Landlock and seccomp, then executes.

Started by an interpreter without our packages, so that it is ready in milliseconds and holds no
data of the server. It reads a plan of plain values from a socket.
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
BIND_TARGET: Final = "/tmp"
"""Mount point of a command's directory; exists on every machine."""

NS_GET_PARENT: Final = 0xB702
NAMESPACES: Final = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
RULE_PATH_BENEATH: Final = 1

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
    _die_with_parent(plan["parent"])
    _join_cgroups(plan["cgroups"])
    if plan["enter"]:
        _enter_namespaces(plan["enter"])
    # Opened first: the stage may hide it, or only root may read it.
    program = os.open(plan["program"], os.O_PATH | os.O_CLOEXEC)
    if plan["bind"]:
        _bind_directory(plan["bind"])
    if plan["stage"]:
        _mount_stage(plan)
    # Other commands of the same user must not inspect this process.
    _prctl(PR_SET_DUMPABLE, 0)
    if plan["stage"]:
        staged = os.open(plan["stage"], os.O_RDONLY | os.O_DIRECTORY)
        _send(server, b"S", staged)
        os.close(staged)
    else:
        _send(server, b"S")
    if not _read(server):
        return
    if plan["enter"]:
        _run_in_namespaces(plan, server, program)
    else:
        _supervise(plan, server, program)


def _read(server: Any) -> bytes:
    """Receive one message; empty if the server is gone."""
    head = _receive_exactly(server, 4)
    return _receive_exactly(server, int.from_bytes(head, "big")) if len(head) == 4 else b""


def _receive_exactly(server: Any, size: int) -> bytes:
    buffer = b""
    while len(buffer) < size:
        chunk = server.recv(size - len(buffer))
        if not chunk:
            return b""
        buffer += chunk
    return buffer


def _send(server: Any, message: bytes, fd: int | None = None) -> None:
    rights = (
        [] if fd is None else [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [fd]))]
    )
    server.sendmsg([message], rights)


def _check_result(result: int, operation: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), operation)
    return result


def _prctl(option: int, value: int, argument: Any = 0) -> None:
    _check_result(
        _libc.prctl(option, ctypes.c_ulong(value), argument, ctypes.c_ulong(0), ctypes.c_ulong(0)),
        f"prctl {option}",
    )


def _die_with_parent(parent: int) -> None:
    _prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _join_cgroups(cgroups: list[str]) -> None:
    for directory in cgroups:
        with open(f"{directory}/cgroup.procs", "w") as procs:
            procs.write(str(os.getpid()))


def _mount(source: str, target: str, filesystem: str, flags: int, options: str = "") -> None:
    arguments = (source.encode(), target.encode(), filesystem.encode(), ctypes.c_ulong(flags))
    _check_result(
        _libc.mount(*arguments, options.encode()), f"mounting {filesystem or source} on {target}"
    )


def _mount_stage(plan: dict[str, Any]) -> None:
    """Mount size-limited tmpfs for everything a command writes, in a new namespace."""
    stage, uid, gid = plan["stage"], plan["uid"], plan["gid"]
    if plan["own_user"]:
        _check_result(_libc.unshare(NEWUSER | NEWNS), "unsharing the user namespace")
        _map_user(uid, gid)
    else:
        _check_result(_libc.unshare(NEWNS), "unsharing the mount namespace")
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    lower = os.open(plan["lower"], os.O_PATH) if plan["lower"] else None
    size_options = f"size={plan['disk']},nr_inodes={plan['inodes']},mode=0700,uid={uid},gid={gid}"
    _mount("carrel", stage, "tmpfs", MS_NOSUID | MS_NODEV, size_options)
    os.mkdir(f"{stage}/side")
    _mount("carrel", f"{stage}/side", "tmpfs", MS_NOSUID | MS_NODEV, size_options)
    for name in ("side/tmp", "side/home", "side/shm", "etc", "upper", "work", "workspace", "lower"):
        os.mkdir(f"{stage}/{name}")
        os.chown(f"{stage}/{name}", uid, gid)
        os.chmod(f"{stage}/{name}", 0o1777 if name in {"side/tmp", "side/shm"} else 0o755)
    for name, text in plan["etc"].items():
        _write(f"{stage}/etc/{name}", text)
    if lower is not None:
        _mount_overlay(lower, stage)
        os.close(lower)


def _bind_directory(directory: str) -> None:
    """Bind a directory to a path that the command's user can reach."""
    _check_result(_libc.unshare(NEWNS), "unsharing the mount namespace")
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    _mount(directory, BIND_TARGET, "", MS_BIND)


def _mount_overlay(lower: int, stage: str) -> None:
    _mount(f"/proc/self/fd/{lower}", f"{stage}/lower", "", MS_BIND)
    _mount("", f"{stage}/lower", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    options = f"lowerdir={stage}/lower,upperdir={stage}/upper,workdir={stage}/work"
    _mount("carrel", f"{stage}/workspace", "overlay", MS_NOSUID | MS_NODEV, options + ",userxattr")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _enter_namespaces(pid: int) -> None:
    """Enter the namespaces of a process; later children live in them.

    They belong to the parent of its user namespace, so that is entered first.
    """
    if os.getuid() == 0:
        os.setgroups([])
    directory = f"/proc/{pid}/ns"
    user_namespace = os.open(f"{directory}/user", os.O_RDONLY | os.O_CLOEXEC)
    namespaces = [os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in NAMESPACES]
    parent_namespace = _check_result(
        _libc.ioctl(user_namespace, NS_GET_PARENT), "finding the parent namespace"
    )
    for fd in (parent_namespace, *namespaces, user_namespace):
        _check_result(_libc.setns(fd, 0), "entering a namespace")
        os.close(fd)


def _run_in_namespaces(plan: dict[str, Any], server: Any, program: int) -> None:
    """Run the command in entered namespaces and exit with its exit code."""
    child = os.fork()
    if child == 0:
        plan["parent"] = 0  # our pid is not visible in its namespace
        os.setsid()
        for capability in range(64):  # a user namespace grants all capabilities
            _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
        _exec_command(plan, program)
    server.close()
    os.close(1)
    os.close(2)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _supervise(plan: dict[str, Any], server: Any, program: int) -> None:
    """Wait for the command, then kill all its processes; also if the server dies.

    Orphans are adopted, so that all of them can be found: bubblewrap's own child may be forked, but
    not yet bound to its parent, when bubblewrap is killed.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: _kill_all_and_exit(137))
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != plan["parent"]:
        os._exit(137)
    plan["parent"] = os.getpid()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _exec_command(plan, program)
    for fd in (server.detach(), 1, 2, *plan["keep"]):
        os.close(fd)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            _kill_all_and_exit(128 - code if code < 0 else code)


def _kill_all_and_exit(code: int) -> None:
    while True:
        for pid in _descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(code)


def _descendants(pid: int) -> list[int]:
    """Return all descendants of a process, the nearest first."""
    pids = [pid]
    for parent in pids:
        with suppress(OSError), open(f"/proc/{parent}/task/{parent}/children") as file:
            pids += [int(child) for child in file.read().split()]
    return pids[1:]


def _exec_command(plan: dict[str, Any], program: int) -> None:
    limits = dict(plan["limits"])
    process_limit = limits.pop("RLIMIT_NPROC", None)
    for name, limit in limits.items():
        _set_limit(name, limit)
    directory = os.open(plan["directory"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if plan["drop"]:
        _drop_privileges(plan)
    if process_limit is not None:
        _limit_processes(plan, process_limit)
    _die_with_parent(plan["parent"])
    os.fchdir(directory)
    for fd in plan["keep"]:
        os.set_inheritable(fd, True)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if plan["landlock"]:
        os.setsid()
        _apply_landlock(plan["landlock"])
    if plan["seccomp"]:
        _apply_seccomp(plan["seccomp"])
    _reset_signals()
    os.execve(program, plan["argv"], plan["env"])


def _reset_signals() -> None:
    """Ignore and block no signal: a command inherits what Python or a service manager set."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _drop_privileges(plan: dict[str, Any]) -> None:
    if not plan["enter"]:  # in an entered namespace they are dropped already
        os.setgroups([])
    os.setresgid(plan["gid"], plan["gid"], plan["gid"])
    os.setresuid(plan["uid"], plan["uid"], plan["uid"])


def _limit_processes(plan: dict[str, Any], limit: int) -> None:
    """Limit the processes of this command, not of all commands of the same user."""
    if plan["own_count"]:
        _enter_user_namespace(plan["uid"], plan["gid"])
    _set_limit("RLIMIT_NPROC", limit)


def _set_limit(name: str, limit: int) -> None:
    resource_id = getattr(resource, name)
    _, hard = resource.getrlimit(resource_id)
    effective = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource_id, (effective, effective))


def _enter_user_namespace(uid: int, gid: int) -> None:
    """Enter a new user namespace, in which the processes of a user are counted anew."""
    _prctl(PR_SET_DUMPABLE, 1)  # otherwise only root may write the maps
    _check_result(_libc.unshare(NEWUSER), "unsharing the user namespace")
    _map_user(uid, gid)
    _prctl(PR_SET_DUMPABLE, 0)


def _map_user(uid: int, gid: int) -> None:
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _apply_landlock(rules: dict[str, Any]) -> None:
    handled = (ctypes.c_uint64 * 3)(rules["files"], rules["network"], rules["scopes"])
    size = ctypes.c_size_t(24 if rules["abi"] >= 6 else 16)
    ruleset = _check_result(
        _libc.syscall(LANDLOCK_CREATE, ctypes.byref(handled), size, ctypes.c_uint32(0)), "landlock"
    )
    for path, allowed in rules["paths"]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        access = allowed if stat.S_ISDIR(os.fstat(fd).st_mode) else allowed & rules["of_files"]
        rule = (ctypes.c_byte * 12)()
        ctypes.memmove(rule, access.to_bytes(8, sys.byteorder) + fd.to_bytes(4, sys.byteorder), 12)
        arguments = (ctypes.c_int(ruleset), ctypes.c_int(RULE_PATH_BENEATH), ctypes.byref(rule))
        _check_result(
            _libc.syscall(LANDLOCK_ADD, *arguments, ctypes.c_uint32(0)), f"landlock for {path}"
        )
        os.close(fd)
    _check_result(
        _libc.syscall(LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)), "landlock"
    )
    os.close(ruleset)


class _SeccompProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def _apply_seccomp(filter: bytes) -> None:
    steps = ctypes.create_string_buffer(filter, len(filter))
    program = _SeccompProgram(len(filter) // 8, ctypes.cast(steps, ctypes.c_void_p))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))


if __name__ == "__main__":
    main()
