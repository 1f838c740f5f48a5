"""Processes that have Carrel loaded from the start: the requesting side.

Loading it takes a process most of a second, and two with the MCP library; a test starts many.
`tests.support.services.preloaded_process` has loaded it once and forks on request. As a program
this module is a proxy of the forked process: arguments, environment, directory, standard files,
signals and exit status are the same. It is loaded each time, so it imports only quick modules.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SO_SNDBUF, SOCK_SEQPACKET, SOL_SOCKET, socket

PASSED_ON = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM)
_LONGEST = 64


class Forked:
    """A process in its own session, which ends with its requester."""

    def __init__(
        self,
        address: str,
        command: list[str],
        env: dict[str, str],
        files: tuple[int, int, int] = (0, 1, 2),
    ) -> None:
        """``command`` is a Python program and its arguments; ``files`` are its standard files."""
        self.returncode: int | None = None
        self._line = socket(AF_UNIX, SOCK_SEQPACKET)
        self._line.connect(address)
        request = marshal.dumps((command, env, os.getcwd()))
        self._line.setsockopt(SOL_SOCKET, SO_SNDBUF, len(request) + 4096)
        numbers = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
        self._line.sendmsg([request], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
        self.pid = int(self._line.recv(_LONGEST))

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._line.settimeout(timeout)
            message = self._line.recv(_LONGEST)
            self.returncode = int(message) if message else -_signal.SIGKILL
            self._line.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def close(self) -> None:
        """Close the connection, which kills the process."""
        self._line.close()

    def terminate(self) -> None:
        self.send_signal(_signal.SIGTERM)


def main() -> None:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, PASSED_ON)
    forked = Forked(sys.argv[1], sys.argv[2:], dict(os.environ))
    for number in PASSED_ON:
        _signal.signal(number, lambda number, _: os.kill(forked.pid, number))
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, PASSED_ON)
    ended = forked.wait()
    if ended >= 0:
        os._exit(ended)
    if -ended in PASSED_ON:
        _signal.signal(-ended, _signal.SIG_DFL)
    os.kill(os.getpid(), -ended)


if __name__ == "__main__":
    main()
