"""Each remote provider with a fake of its service.

Libraries of the services are imported when first used, since importing all takes over a second.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Protocol

from tests.support.live_server import serving

from carrel.core.identifiers import Digest, Path, digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    FileKind,
    InputFile,
    ResourceLimits,
    Sandbox,
)


class Service(Protocol):
    """What a test may query of a fake service."""

    @property
    def running_instances(self) -> list[str]:
        """Existing instances."""


@dataclass
class Provider:
    sandbox: Sandbox
    service: Service
    bounds: ResourceLimits = ResourceLimits(processes=100_000)
    """Limits that are never refused here. Processes are counted on the whole machine, since
    nothing is isolated.
    """
    cancels: bool = True
    """Whether a running command can be cancelled."""

    @asynccontextmanager
    async def run_command(
        self, command: str, files: Any = (), **more: Any
    ) -> AsyncIterator[CommandResult]:
        """Run a command over files, given as bytes or as a kind with bytes."""
        contents = Contents(dict(files))
        bounds = more.pop("bounds", self.bounds)
        order = CommandSpec("run_1", command, contents.placed, bounds, **more)
        async with self.sandbox.run(order, contents) as ran:
            yield ran


class Contents:
    def __init__(self, files: Mapping[str, bytes | tuple[FileKind, bytes]]) -> None:
        inputs = {
            Path(name): value if isinstance(value, tuple) else (FileKind.FILE, value)
            for name, value in files.items()
        }
        self.placed = {
            path: InputFile(form, Blob(digest(content), len(content)))
            for path, (form, content) in inputs.items()
        }
        self._bytes = {digest(content): content for _, content in inputs.values()}

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        return {blob.digest: self._bytes[blob.digest] for blob in blobs}

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        yield self._bytes[blob.digest]


@contextmanager
def on_docker(root: File) -> Iterator[Provider]:
    from tests.fakes.docker import Engine

    from carrel.adapters.sandbox.docker import DockerHost, DockerSandbox

    engine = Engine(root)
    with serving(engine.app(), loop="asyncio") as port:
        host = DockerHost(f"tcp://127.0.0.1:{port}", ("python:3.13-slim", "debian:13-slim"))
        yield Provider(DockerSandbox(host), engine)


@contextmanager
def on_lambda(root: File) -> Iterator[Provider]:
    from tests.fakes.aws_lambda import Functions

    from carrel.adapters.sandbox.aws_lambda import LambdaFunctions, LambdaSandbox

    functions = Functions(root, {"carrel-offline", "carrel-online"})
    with serving(functions.app(), loop="asyncio") as port:
        named = LambdaFunctions(
            without_network="carrel-offline",
            with_network="carrel-online",
            memory_mb=512,
            region="eu-central-1",
            endpoint=f"http://127.0.0.1:{port}",
            access_key="key",
            secret_key="secret",
        )
        yield Provider(LambdaSandbox(named), functions, cancels=False)


@contextmanager
def on_kubernetes(root: File) -> Iterator[Provider]:
    from tests.fakes.kubernetes import Cluster, kubeconfig

    from carrel.adapters.sandbox.kubernetes import KubernetesCluster, KubernetesSandbox

    cluster = Cluster(root)
    with serving(cluster.app(), loop="asyncio") as port:
        config = root / "kubeconfig"
        config.write_text(kubeconfig(port), "utf-8")
        named = KubernetesCluster(str(config), "debian:13-slim", "offline", "online")
        yield Provider(KubernetesSandbox(named), cluster)


@contextmanager
def on_e2b(root: File) -> Iterator[Provider]:
    from tests.fakes.e2b import E2B

    from carrel.adapters.sandbox.e2b import E2BAccount, E2BSandbox

    service = E2B(root)
    with serving(service.app(), loop="asyncio") as port:
        url = f"http://127.0.0.1:{port}"
        account = E2BAccount(
            "key", ("base", "tools"), api_url=url, sandbox_url=url, http_version="1.1"
        )
        yield Provider(E2BSandbox(account), service)


@contextmanager
def on_daytona(root: File) -> Iterator[Provider]:
    from tests.fakes.daytona import Daytona

    from carrel.adapters.sandbox.daytona import DaytonaAccount, DaytonaSandbox

    service = Daytona(root)
    with serving(service.app(), loop="asyncio") as port:
        service.url = f"http://127.0.0.1:{port}"
        account = DaytonaAccount("key", f"{service.url}/api", ("small", "large"))
        yield Provider(DaytonaSandbox(account), service)


REMOTE_PROVIDERS: dict[str, Callable[[File], AbstractContextManager[Provider]]] = {
    "docker": on_docker,
    "lambda": on_lambda,
    "kubernetes": on_kubernetes,
    "e2b": on_e2b,
    "daytona": on_daytona,
}
