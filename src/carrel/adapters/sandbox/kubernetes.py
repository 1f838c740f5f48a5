"""Sandbox provider over Kubernetes: one pod per command.

Pods meet the restricted Pod Security Standard. Network policies belong to namespaces, so there is
one namespace with network access and one without.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, Final

import msgspec
from aiohttp import ClientError, WSMsgType
from kubernetes.aio import config
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.stream import WsApiClient
from msgspec import Struct

from carrel.adapters.sandbox.remote import (
    OutputSink,
    Owner,
    ProviderUnreachable,
    RemoteMachine,
    RemotePaths,
    run_remotely,
)
from carrel.adapters.sandbox.remote.cleanup import dispose, shield_cleanup
from carrel.adapters.sandbox.remote.options import refuse_options, refuse_persistent, resource_name
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    ResourceLimits,
    SandboxUnavailable,
)

IN_CLUSTER: Final = "cluster"
"""Value of `config` that selects the server's own service account."""
_ROOT: Final = "/carrel"
_ORPHAN_SECONDS: Final = 300
"""Time for a pod to start, and to outlive its command if the server dies."""
_API_TIMEOUT_SECONDS: Final = 30
_CHUNK_BYTES: Final = 64 * 1024
_AUTH_SETTINGS: Final = ["BearerToken"]
_WEBSOCKET_CLIENT: Final[Any] = WsApiClient
_HTTP_CALL: Final[Any] = ApiClient.call_api
_STDIN, _STDOUT, _STDERR, _ERROR = range(4)


class KubernetesCluster(Struct, frozen=True):
    """Cluster, namespaces and image of the pods."""

    config: str
    """Path of a kubeconfig, or `cluster`."""
    image: str
    without_network: str = ""
    """Namespace whose policy denies all egress."""
    with_network: str = ""
    runtime_class: str = ""
    start_seconds: int = 120


class KubernetesSandbox:
    """Sandbox provider that runs commands in Kubernetes.

    The kubelet limits memory and disk; a script inside limits time and processes.
    """

    tier = "kubernetes"

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if not self._namespace(limits):
            with_or_without = "with" if limits.network else "without"
            return f"no kubernetes namespace {with_or_without} network access is configured"
        return refuse_persistent("kubernetes", persistent)

    def _namespace(self, limits: ResourceLimits) -> str:
        cluster = self._cluster
        return cluster.with_network if limits.network else cluster.without_network

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(spec, blobs, self._open_pod)

    @asynccontextmanager
    async def _open_pod(self, spec: CommandSpec) -> AsyncIterator[RemoteMachine]:
        refuse_options(spec.options)
        if reason := self.unsupported_reason(spec.limits):
            raise SandboxUnavailable(reason)
        namespace, name = self._namespace(spec.limits), resource_name(spec)
        async with AsyncExitStack() as stack:
            with _as_unreachable():
                configuration = await _load_configuration(self._cluster.config)
                client = await stack.enter_async_context(_WEBSOCKET_CLIENT(configuration))
            pod = KubernetesPod(client, f"/api/v1/namespaces/{namespace}/pods", name)
            pod.paths, pod.owner = _remote_paths(spec), _owner(spec)
            try:
                await shield_cleanup(pod.create(_pod_manifest(self._cluster, spec)))
                await pod.wait_until_running(self._cluster.start_seconds)
                yield pod
            finally:
                await dispose(pod.remove)


async def _load_configuration(source: str) -> Any:
    configuration = Configuration()
    loader: Any = config  # its functions are untyped
    if source == IN_CLUSTER:
        loader.load_incluster_config(client_configuration=configuration)
    else:
        await loader.load_kube_config(source, client_configuration=configuration)
    return configuration


def _remote_paths(spec: CommandSpec) -> RemotePaths:
    return RemotePaths(
        root=_ROOT,
        temporary="/tmp",
        init_command=" ".join(_init_command(spec)),
        provider_blocks_setuid=True,
    )


def _init_command(spec: CommandSpec) -> list[str]:
    return ["sleep", str(spec.limits.seconds + _ORPHAN_SECONDS)]


def _owner(spec: CommandSpec) -> Owner:
    """Return a user id per command: a node counts processes by user across pods."""
    user = 100_000 + zlib.crc32(spec.id.encode()) % 1_900_000_000
    return Owner(user, user)


def _pod_manifest(cluster: KubernetesCluster, command_spec: CommandSpec) -> dict[str, Any]:
    limits, user = command_spec.limits, _owner(command_spec).user
    disk, memory = f"{limits.disk_mb}Mi", f"{limits.memory_mb}Mi"
    container = {
        "name": "command",
        "image": cluster.image,
        "command": _init_command(command_spec),
        "workingDir": _ROOT,
        "resources": {
            "requests": {"cpu": "100m", "memory": memory},
            "limits": {"memory": memory, "ephemeral-storage": f"{2 * limits.disk_mb + 64}Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "root", "mountPath": _ROOT},
            {"name": "temporary", "mountPath": "/tmp"},
        ],
    }
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": limits.seconds + _ORPHAN_SECONDS,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "root", "emptyDir": {"sizeLimit": disk}},
            {"name": "temporary", "emptyDir": {"sizeLimit": disk}},
        ],
        **({"runtimeClassName": cluster.runtime_class} if cluster.runtime_class else {}),
    }
    labels = {"app.kubernetes.io/managed-by": "carrel"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": resource_name(command_spec), "labels": labels},
        "spec": spec,
    }


@contextmanager
def _as_unreachable() -> Iterator[None]:
    try:
        yield
    except ApiException as problem:
        raise ProviderUnreachable(
            f"Kubernetes request failed: {problem.status} {problem.reason}"
        ) from None
    except (ClientError, ConfigException, OSError, TimeoutError) as problem:
        raise ProviderUnreachable(
            f"Kubernetes request failed: {type(problem).__name__}"
        ) from problem


class KubernetesPod:
    """RemoteMachine in a pod; the command runs as its own user id."""

    paths: RemotePaths
    owner: Owner

    def __init__(self, client: Any, pods: str, name: str) -> None:
        self._client, self._pods, self._name = client, pods, name

    async def create(self, manifest: dict[str, Any]) -> None:
        await self._request("POST", self._pods, manifest)

    async def _request(self, method: str, path: str, body: Any = None) -> bytes:
        """Send a request without the SDK's models, which take seconds to build."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        with _as_unreachable():
            request = await self._client.param_serialize(
                method, path, header_params=headers, body=body, auth_settings=_AUTH_SETTINGS
            )
            response = await _HTTP_CALL(
                self._client, *request, _request_timeout=_API_TIMEOUT_SECONDS
            )
            content: bytes = await response.read()
        if response.status >= 400:
            raise ProviderUnreachable(
                f"Kubernetes request failed: {response.status} {response.reason}"
            )
        return content

    async def wait_until_running(self, seconds: int) -> None:
        """Wait until the pod runs. Raises ProviderUnreachable with the reason."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, 0.05
        while (reason := await self._pending_reason()) is not None:
            if loop.time() > deadline or reason in _FATAL_REASONS:
                raise ProviderUnreachable(f"the pod did not start: {reason}")
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)

    async def _pending_reason(self) -> str | None:
        content = await self._request("GET", f"{self._pods}/{self._name}")
        try:
            status = msgspec.json.decode(content, type=_PodResource).status
        except msgspec.DecodeError:
            raise ProviderUnreachable("invalid response from the cluster") from None
        if status.phase == "Running":
            return None
        reasons = [container.state.waiting.reason for container in status.container_statuses]
        return next(filter(None, reasons), status.phase)

    async def remove(self) -> None:
        try:
            await self._request("DELETE", f"{self._pods}/{self._name}", {"gracePeriodSeconds": 0})
        except ProviderUnreachable as problem:
            if " 404 " not in f"{problem} ":
                raise

    async def put(self, archive: bytes) -> None:
        # head needs the length, since not every cluster forwards the end of stdin.
        script = f"head -c {len(archive)} | tar -xpf - --no-same-owner -C {_ROOT}"
        if await self._stream(["bash", "-c", script], archive, _discard, _discard) != 0:
            raise ProviderUnreachable("the files could not be unpacked in the pod")

    async def execute(self, arguments: Sequence[str], out: OutputSink, err: OutputSink) -> int:
        return await self._stream(arguments, None, out, err)

    async def _stream(
        self, arguments: Sequence[str], stdin: bytes | None, out: OutputSink, err: OutputSink
    ) -> int:
        query = [("container", "command"), ("stdout", "true"), ("stderr", "true")]
        query += [("stdin", "true")] if stdin is not None else []
        with _as_unreachable():
            request = await self._client.param_serialize(
                "GET",
                f"{self._pods}/{self._name}/exec",
                query_params=[*query, *(("command", argument) for argument in arguments)],
                auth_settings=_AUTH_SETTINGS,
            )
            connection = (await self._client.call_api(*request, _preload_content=False)).response
            async with connection as socket:
                for start in range(0, len(stdin or b""), _CHUNK_BYTES):
                    part = (stdin or b"")[start : start + _CHUNK_BYTES]
                    await socket.send_bytes(bytes([_STDIN]) + part)
                return await _read_stream(socket, out, err)


class _WaitingState(Struct, frozen=True):
    reason: str = ""


class _ContainerState(Struct, frozen=True):
    waiting: _WaitingState = _WaitingState()


class _ContainerStatus(Struct, frozen=True):
    state: _ContainerState = _ContainerState()


class _PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Unknown"
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _PodResource(Struct, frozen=True):
    status: _PodStatus = _PodStatus()


_FATAL_REASONS: Final = {
    "Failed",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
}


def _discard(_: bytes) -> None:
    """Ignore output."""


async def _read_stream(socket: Any, out: OutputSink, err: OutputSink) -> int:
    """Pass output to the sinks and return the exit code. Raises ProviderUnreachable."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, part = message.data[0], message.data[1:]
        if channel == _ERROR:
            return _parse_exit_code(part)
        if channel in {_STDOUT, _STDERR} and part:
            (err if channel == _STDERR else out)(part)
    raise ProviderUnreachable("the pod was lost")


class _ExecCause(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _ExecDetails(Struct, frozen=True):
    causes: tuple[_ExecCause, ...] = ()


class _ExecStatus(Struct, frozen=True):
    status: str
    details: _ExecDetails = _ExecDetails()


def _parse_exit_code(part: bytes) -> int:
    try:
        status = msgspec.json.decode(part, type=_ExecStatus)
    except msgspec.DecodeError:
        raise ProviderUnreachable("the cluster reported no exit code") from None
    if status.status == "Success":
        return 0
    for cause in status.details.causes:
        if cause.reason == "ExitCode" and cause.message.isdigit():
            return int(cause.message)
    raise ProviderUnreachable("the cluster reported no exit code")
