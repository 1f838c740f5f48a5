"""Commands in pods of a Kubernetes cluster: one for each, deleted when it has ended.

A pod asks for what the restricted Pod Security Standard demands. Whether it has a network is for
the cluster to decide, so there is a namespace for those that shall have one and one for the others.
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
    Owner,
    ProviderUnreachable,
    RemoteMachine,
    RemotePaths,
    Take,
    run_remotely,
)
from carrel.adapters.sandbox.remote.cleanup import dispose, shield_cleanup
from carrel.adapters.sandbox.remote.options import named, no_options, refuse_persistent
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    Fetch,
    ResourceLimits,
    SandboxUnavailable,
)

IN_CLUSTER: Final = "cluster"
"""Instead of a file: the account of the pod that the server itself runs in."""
_ROOT: Final = "/carrel"
_SPARE_SECONDS: Final = 300
"""How long a pod may take to start, and how long it outlives its command if the server is gone."""
_ANSWER_SECONDS: Final = 30
_CHUNK: Final = 64 * 1024
_AUTHENTICATION: Final = ["BearerToken"]
_STREAMING: Final[Any] = WsApiClient
_PLAINLY: Final[Any] = ApiClient.call_api
_STDIN, _STDOUT, _STDERR, _ERROR = range(4)


class KubernetesCluster(Struct, frozen=True):
    """Where pods are made, and of what."""

    config: str
    """A kubeconfig's path, or `cluster`."""
    image: str
    without_network: str = ""
    """A namespace in which a policy denies all egress."""
    with_network: str = ""
    runtime_class: str = ""
    start_seconds: int = 120


class KubernetesSandbox:
    """Memory and disk are bounded by the kubelet, time and processes by a script within."""

    tier = "kubernetes"

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        if not self._namespace(bounds):
            with_or_without = "with" if bounds.network else "without"
            return f"kubernetes has no namespace {with_or_without} a network here"
        return refuse_persistent("kubernetes", persistent)

    def _namespace(self, bounds: ResourceLimits) -> str:
        here = self._cluster
        return here.with_network if bounds.network else here.without_network

    def run(self, order: CommandSpec, fetch: Fetch) -> AbstractAsyncContextManager[CommandResult]:
        return run_remotely(order, fetch, self._opened)

    @asynccontextmanager
    async def _opened(self, order: CommandSpec) -> AsyncIterator[RemoteMachine]:
        no_options(order.options)
        if reason := self.unsupported_reason(order.bounds):
            raise SandboxUnavailable(reason)
        namespace, name = self._namespace(order.bounds), named(order)
        async with AsyncExitStack() as stack:
            with _told_apart():
                configuration = await _configured(self._cluster.config)
                client = await stack.enter_async_context(_STREAMING(configuration))
            pod = Pod(client, f"/api/v1/namespaces/{namespace}/pods", name)
            pod.place, pod.owner = _place(order), _owner(order)
            try:
                await shield_cleanup(pod.make(_asked(self._cluster, order)))
                await pod.until_running(self._cluster.start_seconds)
                yield pod
            finally:
                await dispose(pod.remove)


async def _configured(where: str) -> Any:
    configuration = Configuration()
    loading: Any = config  # whose functions have no types
    if where == IN_CLUSTER:
        loading.load_incluster_config(client_configuration=configuration)
    else:
        await loading.load_kube_config(where, client_configuration=configuration)
    return configuration


def _place(order: CommandSpec) -> RemotePaths:
    return RemotePaths(root=_ROOT, temporary="/tmp", keeper=" ".join(_keeper(order)), confined=True)


def _keeper(order: CommandSpec) -> list[str]:
    return ["sleep", str(order.bounds.seconds + _SPARE_SECONDS)]


def _owner(order: CommandSpec) -> Owner:
    """A user of its own: a node counts processes by user, whichever pod they are in."""
    user = 100_000 + zlib.crc32(order.id.encode()) % 1_900_000_000
    return Owner(user, user)


def _asked(cluster: KubernetesCluster, order: CommandSpec) -> dict[str, Any]:
    bounds, user = order.bounds, _owner(order).user
    disk, memory = f"{bounds.disk_mb}Mi", f"{bounds.memory_mb}Mi"
    container = {
        "name": "command",
        "image": cluster.image,
        "command": _keeper(order),
        "workingDir": _ROOT,
        "resources": {
            "requests": {"cpu": "100m", "memory": memory},
            "limits": {"memory": memory, "ephemeral-storage": f"{2 * bounds.disk_mb + 64}Mi"},
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
        "activeDeadlineSeconds": bounds.seconds + _SPARE_SECONDS,
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
        "metadata": {"name": named(order), "labels": labels},
        "spec": spec,
    }


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except ApiException as problem:
        raise ProviderUnreachable(
            f"the cluster did not do it: {problem.status} {problem.reason}"
        ) from None
    except (ClientError, ConfigException, OSError, TimeoutError) as problem:
        raise ProviderUnreachable(
            f"the cluster did not do it: {type(problem).__name__}"
        ) from problem


class Pod:
    """One pod, in which a command runs as a user that nobody else is."""

    place: RemotePaths
    owner: Owner

    def __init__(self, client: Any, pods: str, name: str) -> None:
        self._client, self._pods, self._name = client, pods, name

    async def make(self, asked: dict[str, Any]) -> None:
        await self._ask("POST", self._pods, asked)

    async def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Without the SDK's models of what is asked and told: they take seconds to be made."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        with _told_apart():
            request = await self._client.param_serialize(
                method, path, header_params=headers, body=body, auth_settings=_AUTHENTICATION
            )
            answer = await _PLAINLY(self._client, *request, _request_timeout=_ANSWER_SECONDS)
            content: bytes = await answer.read()
        if answer.status >= 400:
            raise ProviderUnreachable(f"the cluster did not do it: {answer.status} {answer.reason}")
        return content

    async def until_running(self, seconds: int) -> None:
        """Raises Unreachable where it does not come to run in time, and says why."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + seconds, 0.05
        while (reason := await self._hindrance()) is not None:
            if loop.time() > end or reason in _HOPELESS:
                raise ProviderUnreachable(f"the pod did not start: {reason}")
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)

    async def _hindrance(self) -> str | None:
        content = await self._ask("GET", f"{self._pods}/{self._name}")
        try:
            status = msgspec.json.decode(content, type=_Pod).status
        except msgspec.DecodeError:
            raise ProviderUnreachable("the cluster told nothing of the pod") from None
        if status.phase == "Running":
            return None
        reasons = [each.state.waiting.reason for each in status.container_statuses]
        return next(filter(None, reasons), status.phase)

    async def remove(self) -> None:
        try:
            await self._ask("DELETE", f"{self._pods}/{self._name}", {"gracePeriodSeconds": 0})
        except ProviderUnreachable as problem:
            if " 404 " not in f"{problem} ":
                raise

    async def put(self, parcel: bytes) -> None:
        # Its length is told, since not every cluster passes on that an input has ended.
        script = f"head -c {len(parcel)} | tar -xpf - --no-same-owner -C {_ROOT}"
        if await self._stream(["bash", "-c", script], parcel, _ignored, _ignored) != 0:
            raise ProviderUnreachable("the files could not be unpacked in the pod")

    async def execute(self, words: Sequence[str], out: Take, err: Take) -> int:
        return await self._stream(words, None, out, err)

    async def _stream(self, words: Sequence[str], given: bytes | None, out: Take, err: Take) -> int:
        asked = [("container", "command"), ("stdout", "true"), ("stderr", "true")]
        asked += [("stdin", "true")] if given is not None else []
        with _told_apart():
            request = await self._client.param_serialize(
                "GET",
                f"{self._pods}/{self._name}/exec",
                query_params=[*asked, *(("command", word) for word in words)],
                auth_settings=_AUTHENTICATION,
            )
            opening = (await self._client.call_api(*request, _preload_content=False)).response
            async with opening as socket:
                for start in range(0, len(given or b""), _CHUNK):
                    part = (given or b"")[start : start + _CHUNK]
                    await socket.send_bytes(bytes([_STDIN]) + part)
                return await _heard(socket, out, err)


class _Waiting(Struct, frozen=True):
    reason: str = ""


class _State(Struct, frozen=True):
    waiting: _Waiting = _Waiting()


class _ContainerStatus(Struct, frozen=True):
    state: _State = _State()


class _PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Unknown"
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _Pod(Struct, frozen=True):
    status: _PodStatus = _PodStatus()


_HOPELESS: Final = {"Failed", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}


def _ignored(_: bytes) -> None:
    """What is said while files are unpacked is of no use."""


async def _heard(socket: Any, out: Take, err: Take) -> int:
    """All that is said until the program has ended. Raises Unreachable where it is cut off."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, part = message.data[0], message.data[1:]
        if channel == _ERROR:
            return _code(part)
        if channel in {_STDOUT, _STDERR} and part:
            (err if channel == _STDERR else out)(part)
    raise ProviderUnreachable("the pod was lost")


class _Cause(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Details(Struct, frozen=True):
    causes: tuple[_Cause, ...] = ()


class _Status(Struct, frozen=True):
    status: str
    details: _Details = _Details()


def _code(part: bytes) -> int:
    try:
        status = msgspec.json.decode(part, type=_Status)
    except msgspec.DecodeError:
        raise ProviderUnreachable("the cluster told no exit code") from None
    if status.status == "Success":
        return 0
    for cause in status.details.causes:
        if cause.reason == "ExitCode" and cause.message.isdigit():
            return int(cause.message)
    raise ProviderUnreachable("the cluster told no exit code")
