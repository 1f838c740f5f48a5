"""Commands in containers of a Docker engine: one for each, gone when it has ended.

The root is read-only. The command's directory is a volume in memory, of a bounded size, because an
engine unpacks archives into volumes but neither into a read-only root nor into a `tmpfs` mount.
"""

from __future__ import annotations

import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any, BinaryIO, Final, TypeVar

import docker
from anyio import CapacityLimiter, to_thread
from docker.errors import DockerException, ImageNotFound
from docker.tls import TLSConfig
from docker.types import DriverConfig, Mount
from msgspec import Struct
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from carrel.adapters.sandbox.remote import (
    Owner,
    ProviderUnreachable,
    RemoteMachine,
    RemotePaths,
    Take,
    run_remotely,
)
from carrel.adapters.sandbox.remote.cleanup import dispose, shield_cleanup
from carrel.adapters.sandbox.remote.options import choose_option, named, refuse_persistent
from carrel.ports.sandbox import CommandResult, CommandSpec, Fetch, ResourceLimits

_ROOT: Final = "/carrel"
"""Where a container has its volume."""
_NOBODY: Final = 65534
_AT_ONCE: Final = 64
_SPARE_SECONDS: Final = 300
"""How long a container outlives its command where the server is gone."""
_ANSWER_SECONDS: Final = 60
_CHUNK: Final = 64 * 1024
_PATIENCE: Final = 40
_FRAME: Final = struct.Struct(">BxxxL")
_STDERR: Final = 2
Result = TypeVar("Result")


class DockerHost(Struct, frozen=True):
    """Where the engine is, and what may run there."""

    url: str
    images: tuple[str, ...]
    """Which a record may choose from; the first is meant where it chooses none."""
    certificates: str = ""
    """Directory with `ca.pem`, `cert.pem` and `key.pem`, for an engine behind TLS."""
    runtime: str = ""
    """Such as `runsc`; the engine's own default if empty."""


class DockerSandbox:
    """Bounds of memory, processes and disk are kept by the engine, time by a script within."""

    tier = "docker"

    def __init__(self, host: DockerHost) -> None:
        self._host = host
        self._limiter: CapacityLimiter | None = None

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        if bounds.memory_mb < _LEAST_MEMORY:
            return f"docker needs at least {_LEAST_MEMORY} MB of memory for a command"
        return refuse_persistent("docker", persistent)

    def run(self, order: CommandSpec, fetch: Fetch) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(order, fetch, self._opened)

    @asynccontextmanager
    async def _opened(self, order: CommandSpec) -> AsyncIterator[RemoteMachine]:
        image = choose_option(order, "image", self._host.images)
        if self._limiter is None:
            self._limiter = CapacityLimiter(_AT_ONCE)
        engine = DockerEngine(self._limiter)
        asked = _asked(self._host, order, image)
        try:
            await shield_cleanup(engine.do(lambda: engine.connect(self._host)))
            id = await shield_cleanup(engine.do(lambda: engine.start(asked)))
            yield Container(engine, id, _place(order))
        finally:
            await dispose(lambda: engine.do(lambda: engine.remove(named(order))))


_LEAST_MEMORY: Final = 6
"""The least that an engine takes."""


def _place(order: CommandSpec) -> RemotePaths:
    return RemotePaths(
        root=_ROOT, temporary="/tmp", keeper=" ".join(_keeper(order)), counted=True, confined=True
    )


def _keeper(order: CommandSpec) -> list[str]:
    return ["sleep", str(order.bounds.seconds + _SPARE_SECONDS)]


def _asked(host: DockerHost, order: CommandSpec, image: str) -> dict[str, Any]:
    """What the engine is asked for."""
    bounds = order.bounds
    in_memory = f"size={bounds.disk_mb}m,uid={_NOBODY},gid={_NOBODY},mode=0755,nosuid,nodev"
    volume = DriverConfig("local", {"type": "tmpfs", "device": "tmpfs", "o": in_memory})
    return {
        "image": image,
        # In the place of whatever the image would start.
        "entrypoint": _keeper(order),
        "healthcheck": {"test": ["NONE"]},
        "user": f"{_NOBODY}:{_NOBODY}",
        "working_dir": _ROOT,
        "name": named(order),
        "labels": {"carrel.order": order.id},
        "host_config": {
            "auto_remove": True,
            "network_mode": "bridge" if bounds.network else "none",
            "mem_limit": f"{bounds.memory_mb}m",
            "memswap_limit": f"{bounds.memory_mb}m",
            "pids_limit": bounds.processes + _OURS,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "read_only": True,
            "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,size={bounds.disk_mb}m,mode=1777"},
            "mounts": [Mount(_ROOT, None, "volume", no_copy=True, driver_config=volume)],
            "ipc_mode": "private",
            "log_config": {"Type": "none"},
            **({"runtime": host.runtime} if host.runtime else {}),
        },
    }


_OURS: Final = 12
"""Processes of the scripts around a command."""


class DockerEngine:
    """The engine's client, which blocks: all of it is done in threads."""

    def __init__(self, limiter: CapacityLimiter) -> None:
        self._limiter = limiter
        self._client: Any = None

    async def do(self, work: Callable[[], Result]) -> Result:
        with _told_apart():
            return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)

    def connect(self, host: DockerHost) -> None:
        tls = _tls(host.certificates) if host.certificates else False
        self._client = docker.APIClient(base_url=host.url, tls=tls, timeout=_ANSWER_SECONDS)

    def start(self, asked: dict[str, Any]) -> str:
        config = self._client.create_host_config(**asked.pop("host_config"))
        made = self._client.create_container(host_config=config, **asked)
        self._client.start(made["Id"])
        return str(made["Id"])

    def remove(self, name: str) -> None:
        """By its name, which is known even where the answer that told its id was lost."""
        if self._client is None:
            return
        with suppress(docker.errors.NotFound):
            self._client.remove_container(name, v=True, force=True)
        self._client.close()

    def put(self, id: str, parcel: bytes) -> None:
        self._client.put_archive(id, _ROOT, parcel)

    def execute(self, id: str, words: Sequence[str], out: Take, err: Take) -> int:
        made = self._client.exec_create(id, list(words), user=f"{_NOBODY}:{_NOBODY}")
        # Not `exec_start`: it reads past what the answer's head has buffered already.
        url = f"{self._client.base_url}/v{self._client.api_version}/exec/{made['Id']}/start"
        asked = {"Detach": False, "Tty": False}
        with self._client.post(
            url, json=asked, stream=True, timeout=(_ANSWER_SECONDS, None)
        ) as answer:
            answer.raise_for_status()
            for stream, part in _frames(answer.raw):
                (err if stream == _STDERR else out)(part)
        return self._code(made["Id"])

    def _code(self, id: str) -> int:
        """It may be known only a moment after the last that was said. Raises Unreachable."""
        for _ in range(_PATIENCE):
            found = self._client.exec_inspect(id)
            if not found["Running"] and found["ExitCode"] is not None:
                return int(found["ExitCode"])
            time.sleep(0.05)
        raise ProviderUnreachable("the container was lost")


def _tls(directory: str) -> TLSConfig:
    return TLSConfig(
        client_cert=(f"{directory}/cert.pem", f"{directory}/key.pem"),
        ca_cert=f"{directory}/ca.pem",
        verify=True,
    )


def _frames(raw: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each with the number of its stream, in pieces, however long it says that it is."""
    while len(head := raw.read(_FRAME.size)) == _FRAME.size:
        stream, left = _FRAME.unpack(head)
        while left and (part := raw.read(min(left, _CHUNK))):
            left -= len(part)
            yield stream, part


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except ImageNotFound:
        raise ProviderUnreachable(
            "the Docker host does not have the image: pull it there"
        ) from None
    except (DockerException, RequestException, HTTPError, OSError) as problem:
        raise ProviderUnreachable(
            f"the Docker engine did not do it: {type(problem).__name__}"
        ) from problem


class Container:
    """One container, in which a command runs as nobody."""

    owner = Owner(_NOBODY, _NOBODY)

    def __init__(self, engine: DockerEngine, id: str, place: RemotePaths) -> None:
        self._engine, self._id, self.place = engine, id, place

    async def put(self, parcel: bytes) -> None:
        await self._engine.do(lambda: self._engine.put(self._id, parcel))

    async def execute(self, words: Sequence[str], out: Take, err: Take) -> int:
        return await self._engine.do(lambda: self._engine.execute(self._id, words, out, err))
