"""Sandbox provider over a Docker engine: one container per command.

The root file system is read-only. The command's directory is a size-limited tmpfs volume, because
the engine unpacks archives into volumes but not into a read-only root or a `tmpfs` mount.
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
    OutputSink,
    Owner,
    ProviderUnreachable,
    RemoteMachine,
    RemotePaths,
    run_remotely,
)
from carrel.adapters.sandbox.remote.cleanup import dispose, shield_cleanup
from carrel.adapters.sandbox.remote.options import choose_option, refuse_persistent, resource_name
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import CommandResult, CommandSpec, ResourceLimits

_ROOT: Final = "/carrel"
"""Mount point of the volume in the container."""
_NOBODY: Final = 65534
_MAX_CONCURRENT: Final = 64
_ORPHAN_SECONDS: Final = 300
"""How long a container outlives its command if the server dies."""
_API_TIMEOUT_SECONDS: Final = 60
_CHUNK_BYTES: Final = 64 * 1024
_EXIT_CODE_POLLS: Final = 40
_FRAME_HEADER: Final = struct.Struct(">BxxxL")
_STDERR: Final = 2
Result = TypeVar("Result")


class DockerHost(Struct, frozen=True):
    """Docker engine and the images that commands may use."""

    url: str
    images: tuple[str, ...]
    """Images that a sandbox may choose; the first is the default."""
    certificates: str = ""
    """Directory with `ca.pem`, `cert.pem` and `key.pem` for an engine with TLS."""
    runtime: str = ""
    """For example `runsc`; the engine's default if empty."""


class DockerSandbox:
    """Sandbox provider that runs commands in Docker.

    The engine limits memory, processes and disk; a script inside limits time.
    """

    tier = "docker"

    def __init__(self, host: DockerHost) -> None:
        self._host = host
        self._limiter: CapacityLimiter | None = None

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if limits.memory_mb < _MIN_MEMORY_MB:
            return f"docker needs at least {_MIN_MEMORY_MB} MB of memory for a command"
        return refuse_persistent("docker", persistent)

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(spec, blobs, self._open_container)

    @asynccontextmanager
    async def _open_container(self, spec: CommandSpec) -> AsyncIterator[RemoteMachine]:
        image = choose_option(spec, "image", self._host.images)
        if self._limiter is None:
            self._limiter = CapacityLimiter(_MAX_CONCURRENT)
        engine = DockerEngine(self._limiter)
        container_config = _container_config(self._host, spec, image)
        try:
            await shield_cleanup(engine.run_in_thread(lambda: engine.connect(self._host)))
            id = await shield_cleanup(engine.run_in_thread(lambda: engine.start(container_config)))
            yield DockerContainer(engine, id, _remote_paths(spec))
        finally:
            await dispose(lambda: engine.run_in_thread(lambda: engine.remove(resource_name(spec))))


_MIN_MEMORY_MB: Final = 6
"""The smallest limit that an engine accepts."""


def _remote_paths(spec: CommandSpec) -> RemotePaths:
    return RemotePaths(
        root=_ROOT,
        temporary="/tmp",
        init_command=" ".join(_init_command(spec)),
        provider_limits_processes=True,
        provider_blocks_setuid=True,
    )


def _init_command(spec: CommandSpec) -> list[str]:
    return ["sleep", str(spec.limits.seconds + _ORPHAN_SECONDS)]


def _container_config(host: DockerHost, spec: CommandSpec, image: str) -> dict[str, Any]:
    """Arguments for creating the container."""
    limits = spec.limits
    mount_options = f"size={limits.disk_mb}m,uid={_NOBODY},gid={_NOBODY},mode=0755,nosuid,nodev"
    volume = DriverConfig("local", {"type": "tmpfs", "device": "tmpfs", "o": mount_options})
    return {
        "image": image,
        # Replaces the image's own entrypoint.
        "entrypoint": _init_command(spec),
        "healthcheck": {"test": ["NONE"]},
        "user": f"{_NOBODY}:{_NOBODY}",
        "working_dir": _ROOT,
        "name": resource_name(spec),
        "labels": {"carrel.order": spec.id},
        "host_config": {
            "auto_remove": True,
            "network_mode": "bridge" if limits.network else "none",
            "mem_limit": f"{limits.memory_mb}m",
            "memswap_limit": f"{limits.memory_mb}m",
            "pids_limit": limits.processes + _SCRIPT_PROCESSES,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "read_only": True,
            "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,size={limits.disk_mb}m,mode=1777"},
            "mounts": [Mount(_ROOT, None, "volume", no_copy=True, driver_config=volume)],
            "ipc_mode": "private",
            "log_config": {"Type": "none"},
            **({"runtime": host.runtime} if host.runtime else {}),
        },
    }


_SCRIPT_PROCESSES: Final = 12
"""Processes of the scripts around the command."""


class DockerEngine:
    """Docker's blocking client; every call runs in a thread."""

    def __init__(self, limiter: CapacityLimiter) -> None:
        self._limiter = limiter
        self._client: Any = None

    async def run_in_thread(self, function: Callable[[], Result]) -> Result:
        with _as_unreachable():
            return await to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._limiter)

    def connect(self, host: DockerHost) -> None:
        tls = _tls(host.certificates) if host.certificates else False
        self._client = docker.APIClient(base_url=host.url, tls=tls, timeout=_API_TIMEOUT_SECONDS)

    def start(self, container_config: dict[str, Any]) -> str:
        config = self._client.create_host_config(**container_config.pop("host_config"))
        container = self._client.create_container(host_config=config, **container_config)
        self._client.start(container["Id"])
        return str(container["Id"])

    def remove(self, name: str) -> None:
        """Remove by name, which is known even if the response with the id was lost."""
        if self._client is None:
            return
        with suppress(docker.errors.NotFound):
            self._client.remove_container(name, v=True, force=True)
        self._client.close()

    def put(self, id: str, archive: bytes) -> None:
        self._client.put_archive(id, _ROOT, archive)

    def execute(self, id: str, arguments: Sequence[str], out: OutputSink, err: OutputSink) -> int:
        exec_instance = self._client.exec_create(id, list(arguments), user=f"{_NOBODY}:{_NOBODY}")
        # Not `exec_start`: it skips bytes that were buffered with the response headers.
        url = (
            f"{self._client.base_url}/v{self._client.api_version}/exec/{exec_instance['Id']}/start"
        )
        body = {"Detach": False, "Tty": False}
        with self._client.post(
            url, json=body, stream=True, timeout=(_API_TIMEOUT_SECONDS, None)
        ) as response:
            response.raise_for_status()
            for stream, part in _read_frames(response.raw):
                (err if stream == _STDERR else out)(part)
        return self._wait_for_exit_code(exec_instance["Id"])

    def _wait_for_exit_code(self, id: str) -> int:
        """Poll for the exit code after the output ended. Raises ProviderUnreachable."""
        for _ in range(_EXIT_CODE_POLLS):
            status = self._client.exec_inspect(id)
            if not status["Running"] and status["ExitCode"] is not None:
                return int(status["ExitCode"])
            time.sleep(0.05)
        raise ProviderUnreachable("the container was lost")


def _tls(directory: str) -> TLSConfig:
    return TLSConfig(
        client_cert=(f"{directory}/cert.pem", f"{directory}/key.pem"),
        ca_cert=f"{directory}/ca.pem",
        verify=True,
    )


def _read_frames(raw: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield stream number and chunk of the multiplexed output, in bounded chunks."""
    while len(header := raw.read(_FRAME_HEADER.size)) == _FRAME_HEADER.size:
        stream, remaining = _FRAME_HEADER.unpack(header)
        while remaining and (part := raw.read(min(remaining, _CHUNK_BYTES))):
            remaining -= len(part)
            yield stream, part


@contextmanager
def _as_unreachable() -> Iterator[None]:
    try:
        yield
    except ImageNotFound:
        raise ProviderUnreachable("image not found on the Docker host; pull it there") from None
    except (DockerException, RequestException, HTTPError, OSError) as problem:
        raise ProviderUnreachable(f"Docker request failed: {type(problem).__name__}") from problem


class DockerContainer:
    """RemoteMachine in a container; the command runs as user nobody."""

    owner = Owner(_NOBODY, _NOBODY)

    def __init__(self, engine: DockerEngine, id: str, paths: RemotePaths) -> None:
        self._engine, self._id, self.paths = engine, id, paths

    async def put(self, archive: bytes) -> None:
        await self._engine.run_in_thread(lambda: self._engine.put(self._id, archive))

    async def execute(self, arguments: Sequence[str], out: OutputSink, err: OutputSink) -> int:
        return await self._engine.run_in_thread(
            lambda: self._engine.execute(self._id, arguments, out, err)
        )
