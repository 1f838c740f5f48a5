"""What a command may not ask of the kernel, as a seccomp filter for both machines we know."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

LD, JEQ, JGE, JSET, RET = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Where in its data a filter finds what is asked; of an argument, the lower half."""
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
X32: Final = 0x40000000
NAMESPACES: Final = 0x7E020080
"""CLONE_NEW: time, mount, cgroup, uts, ipc, user, pid, net."""
CLONED: Final = 0x7E020000
"""The same for clone, where the lowest byte is a signal."""
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
UNIX, INET, INET6 = 1, 2, 10


class SocketPolicy(StrEnum):
    """Which a command may open. A pair of its own it always may."""

    USUAL = "usual"
    """Where it has a network of its own, or was given ours."""
    NONE = "none"


class CpuArchitecture(Struct, frozen=True):
    audit: int
    calls: dict[str, int]
    sockets: int
    ioctl: int
    clone: int
    unshare: int


# Numbers that came after the two tables grew together are the same on both.
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
_NEIGHBOURS: Final = {
    "x86_64": {
        "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "setpriority": 141,
        "ioprio_set": 251, "process_madvise": 440, "process_mrelease": 448,
    },
    "aarch64": {
        "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180, "setpriority": 140,
        "ioprio_set": 30, "process_madvise": 440, "process_mrelease": 448,
    },
}  # fmt: skip
"""What reaches others of the same user, where no namespace hides them."""
_OF_ITSELF: Final = {
    "x86_64": {
        "prlimit64": 302, "sched_setaffinity": 203, "sched_setscheduler": 144,
        "sched_setparam": 142, "sched_setattr": 314,
    },
    "aarch64": {
        "prlimit64": 261, "sched_setaffinity": 122, "sched_setscheduler": 119,
        "sched_setparam": 118, "sched_setattr": 274,
    },
}  # fmt: skip
"""What a process may ask for itself and for nobody else there."""
_UNSEEN: Final = {
    "x86_64": {"memfd_create": 319, "memfd_secret": 447, "shmget": 29},
    "aarch64": {"memfd_create": 279, "memfd_secret": 447, "shmget": 194},
}
"""Memory that is no process's, where the kernel does not count it for all of them together."""
CLONE3: Final = 435
MACHINES: Final = {
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


def _where(number: int, steps: Iterable[bytes]) -> bytes:
    """Steps for one call alone, which end in a verdict; for any other they are leapt over."""
    inner = tuple(steps)
    return _step(JEQ, number, 0, len(inner)) + b"".join(inner)


def _only(families: Iterable[int]) -> tuple[bytes, ...]:
    """Sockets of these families and of no other."""
    checks = (step for family in families for step in (_step(JEQ, family, 0, 1), _ALLOW))
    return (_step(LD, FIRST), *checks, _fail(errno.EAFNOSUPPORT))


def _unless(bits: int) -> tuple[bytes, ...]:
    return (_step(LD, FIRST), _step(JSET, bits, 0, 1), _fail(errno.EPERM), _ALLOW)


def _if_itself() -> tuple[bytes, ...]:
    return (_step(LD, FIRST), _step(JEQ, 0, 0, 1), _ALLOW, _fail(errno.EPERM))


def _unless_second(values: Iterable[int]) -> tuple[bytes, ...]:
    checks = (step for value in values for step in (_step(JEQ, value, 0, 1), _fail(errno.EPERM)))
    return (_step(LD, SECOND), *checks, _ALLOW)


def filter_for(
    machine: str,
    sockets: SocketPolicy = SocketPolicy.USUAL,
    *,
    alone: bool = True,
    grouped: bool = True,
) -> bytes:
    """The filter as the kernel takes it. Raises KeyError for a machine that we do not know.

    ``alone`` says that namespaces of its own hide other processes and their objects from it,
    ``grouped`` that the memory of all its processes is bounded by a control group.
    """
    known = MACHINES[machine]
    refused = [known.calls]
    refused += [] if alone else [_NEIGHBOURS[machine]]
    refused += [] if grouped else [_UNSEEN[machine]]
    denied = sorted({number for calls in refused for number in calls.values()})
    itself = () if alone else _OF_ITSELF[machine].values()
    families = (UNIX, INET, INET6) if sockets is SocketPolicy.USUAL else ()
    parts = [
        _step(LD, ARCHITECTURE) + _step(JEQ, known.audit, 1, 0) + _step(RET, KILL),
        _step(LD, NUMBER),
        _step(JGE, X32, 0, 1) + _fail(errno.ENOSYS) if machine == "x86_64" else b"",
        _where(CLONE3, (_fail(errno.ENOSYS),)),
        _where(known.clone, _unless(CLONED)),
        _where(known.unshare, _unless(NAMESPACES)),
        _where(known.sockets, _only(families)),
        _where(known.ioctl, _unless_second((TIOCSTI, TIOCLINUX))),
        *(_where(number, _if_itself()) for number in itself),
        *(_where(number, (_fail(errno.EPERM),)) for number in denied),
        _ALLOW,
    ]
    return b"".join(parts)
