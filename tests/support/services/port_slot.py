"""A range of local ports that belongs to one pytest run."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

HOST = "127.0.0.1"
SIZE = 16
# Below the range from which systems take ports for outgoing connections.
FIRST, LAST = 10_240, 32_000


@dataclass(frozen=True)
class Slot:
    """The guard stays bound while the slot is in use and keeps other runs out of `ports`."""

    guard: socket.socket
    ports: tuple[int, ...]


def reserve_slot() -> Slot:
    """A free slot whose ports have no listener."""
    starts = list(range(FIRST, LAST, SIZE))
    random.shuffle(starts)
    for start in starts:
        guard = bind_port(start)
        if guard is None:
            continue
        ports = tuple(range(start + 1, start + SIZE))
        if all(is_free(port) for port in ports):
            return Slot(guard, ports)
        guard.close()
    raise RuntimeError("no run of free local ports")


def bind_port(port: int) -> socket.socket | None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        return None
    return sock


def is_free(port: int) -> bool:
    sock = bind_port(port)
    if sock is None:
        return False
    sock.close()
    return True
