"""Seccomp filters that deny dangerous system calls on x86-64 and aarch64."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

LD, JEQ, JGE, JSET, RET = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data; of an argument, the lower half."""
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
X32: Final = 0x40000000
NAMESPACES: Final = 0x7E020080
"""CLONE_NEW: time, mount, cgroup, uts, ipc, user, pid, net."""
CLONE_NAMESPACES: Final = 0x7E020000
"""The same flags for clone, whose lowest byte is a signal."""
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
UNIX, INET, INET6 = 1, 2, 10


class SocketPolicy(StrEnum):
    """Socket families a command may open. Socket pairs are always allowed."""

    ALLOWED = "usual"
    """For a command with its own network namespace or with network access."""
    NONE = "none"


class CpuArchitecture(Struct, frozen=True):
    audit: int
    calls: dict[str, int]
    sockets: int
    ioctl: int
    clone: int
    unshare: int


# Newer system calls have the same number on both architectures.
_SHARED: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "open_tree_attr": 467,
}  # fmt: skip
_X86_64: Final = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "keyctl": 250, "add_key": 248, "request_key": 249,
    "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313,
    "delete_module": 176, "create_module": 174, "reboot": 169, "swapon": 167, "swapoff": 168,
    "acct": 163, "quotactl": 179, "syslog": 103, "vhangup": 153, "nfsservctl": 180,
    "iopl": 172, "ioperm": 173, "modify_ldt": 154, "uselib": 134, "_sysctl": 156,
    "open_by_handle_at": 304, "name_to_handle_at": 303, "lookup_dcookie": 212,
    "fanotify_init": 300, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159,
    "clock_adjtime": 305, "sethostname": 170, "setdomainname": 171,
    "move_pages": 279, "migrate_pages": 256,
}  # fmt: skip
_AARCH64: Final = {
    "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "setns": 268,
    "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
    "keyctl": 219, "add_key": 217, "request_key": 218,
    "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273,
    "delete_module": 106, "reboot": 142, "swapon": 224, "swapoff": 225,
    "acct": 89, "quotactl": 60, "syslog": 116, "vhangup": 58, "nfsservctl": 42,
    "open_by_handle_at": 265, "name_to_handle_at": 264, "lookup_dcookie": 18,
    "fanotify_init": 262, "settimeofday": 170, "clock_settime": 112, "adjtimex": 171,
    "clock_adjtime": 266, "sethostname": 161, "setdomainname": 162,
    "move_pages": 239, "migrate_pages": 238,
}  # fmt: skip
_CROSS_PROCESS_CALLS: Final = {
    "x86_64": {
        "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "setpriority": 141,
        "ioprio_set": 251, "process_madvise": 440, "process_mrelease": 448,
    },
    "aarch64": {
        "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180, "setpriority": 140,
        "ioprio_set": 30, "process_madvise": 440, "process_mrelease": 448,
    },
}  # fmt: skip
"""Calls that reach other processes of the same user if no namespace hides them."""
_SELF_ONLY_CALLS: Final = {
    "x86_64": {
        "prlimit64": 302, "sched_setaffinity": 203, "sched_setscheduler": 144,
        "sched_setparam": 142, "sched_setattr": 314,
    },
    "aarch64": {
        "prlimit64": 261, "sched_setaffinity": 122, "sched_setscheduler": 119,
        "sched_setparam": 118, "sched_setattr": 274,
    },
}  # fmt: skip
"""Calls that a process may apply only to itself."""
_UNACCOUNTED_MEMORY_CALLS: Final = {
    "x86_64": {"memfd_create": 319, "memfd_secret": 447, "shmget": 29},
    "aarch64": {"memfd_create": 279, "memfd_secret": 447, "shmget": 194},
}
"""Memory outside any process, which only a control group could limit."""
CLONE3: Final = 435
ARCHITECTURES: Final = {
    "x86_64": CpuArchitecture(
        0xC000003E, _X86_64 | _SHARED, sockets=41, ioctl=16, clone=56, unshare=272
    ),
    "aarch64": CpuArchitecture(
        0xC00000B7, _AARCH64 | _SHARED, sockets=198, ioctl=29, clone=220, unshare=97
    ),
}


def _step(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, k)


def _fail(code: int) -> bytes:
    return _step(RET, FAIL | code)


_ALLOW: Final = _step(RET, ALLOW)


def _for_syscall(number: int, steps: Iterable[bytes]) -> bytes:
    """Instructions that apply to one system call and end in a verdict."""
    inner = tuple(steps)
    return _step(JEQ, number, 0, len(inner)) + b"".join(inner)


def _allow_families(families: Iterable[int]) -> tuple[bytes, ...]:
    """Allow sockets of these families only."""
    checks = (step for family in families for step in (_step(JEQ, family, 0, 1), _ALLOW))
    return (_step(LD, FIRST), *checks, _fail(errno.EAFNOSUPPORT))


def _deny_flags(bits: int) -> tuple[bytes, ...]:
    return (_step(LD, FIRST), _step(JSET, bits, 0, 1), _fail(errno.EPERM), _ALLOW)


def _allow_self() -> tuple[bytes, ...]:
    return (_step(LD, FIRST), _step(JEQ, 0, 0, 1), _ALLOW, _fail(errno.EPERM))


def _deny_second_argument(values: Iterable[int]) -> tuple[bytes, ...]:
    checks = (step for value in values for step in (_step(JEQ, value, 0, 1), _fail(errno.EPERM)))
    return (_step(LD, SECOND), *checks, _ALLOW)


def filter_for(
    machine: str,
    sockets: SocketPolicy = SocketPolicy.ALLOWED,
    *,
    own_namespaces: bool = True,
    has_cgroup: bool = True,
) -> bytes:
    """Return the BPF filter. Raises KeyError for an unknown architecture.

    ``own_namespaces``: namespaces hide other processes from the command. ``has_cgroup``: a control
    group limits the memory of all its processes.
    """
    architecture = ARCHITECTURES[machine]
    denied_tables = [architecture.calls]
    denied_tables += [] if own_namespaces else [_CROSS_PROCESS_CALLS[machine]]
    denied_tables += [] if has_cgroup else [_UNACCOUNTED_MEMORY_CALLS[machine]]
    denied = sorted({number for calls in denied_tables for number in calls.values()})
    self_only = () if own_namespaces else _SELF_ONLY_CALLS[machine].values()
    families = (UNIX, INET, INET6) if sockets is SocketPolicy.ALLOWED else ()
    parts = [
        _step(LD, ARCHITECTURE) + _step(JEQ, architecture.audit, 1, 0) + _step(RET, KILL),
        _step(LD, NUMBER),
        _step(JGE, X32, 0, 1) + _fail(errno.ENOSYS) if machine == "x86_64" else b"",
        _for_syscall(CLONE3, (_fail(errno.ENOSYS),)),
        _for_syscall(architecture.clone, _deny_flags(CLONE_NAMESPACES)),
        _for_syscall(architecture.unshare, _deny_flags(NAMESPACES)),
        _for_syscall(architecture.sockets, _allow_families(families)),
        _for_syscall(architecture.ioctl, _deny_second_argument((TIOCSTI, TIOCLINUX))),
        *(_for_syscall(number, _allow_self()) for number in self_only),
        *(_for_syscall(number, (_fail(errno.EPERM),)) for number in denied),
        _ALLOW,
    ]
    return b"".join(parts)
