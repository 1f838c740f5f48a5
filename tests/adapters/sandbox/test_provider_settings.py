"""What each provider elsewhere is asked for, what it refuses, and what happens when it fails."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from pathlib import Path as File
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.remote_providers import (
    ELSEWHERE,
    Provider,
    on_daytona,
    on_docker,
    on_e2b,
    on_kubernetes,
    on_lambda,
)
from tests.support.wait import wait_until

from carrel.adapters.sandbox.docker import DockerHost, DockerSandbox
from carrel.ports.sandbox import CommandResult, SandboxUnavailable
from carrel.settings import SettingsError, load
from carrel.wiring import sandbox_providers
from carrel.wiring.sandbox_providers import remote_sandboxes

Opens = Callable[[File], AbstractContextManager[Provider]]


def tell(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def ran(provider: Provider, command: str = "true", **more: Any) -> CommandResult:
    async with provider.ran(command, **more) as ended:
        return ended


def refused(provider: Provider, **more: Any) -> str:
    with pytest.raises(SandboxUnavailable) as problem:
        tell(ran(provider, **more))
    assert getattr(provider.service, "alive", []) == []
    return str(problem.value)


def test_a_container_has_nothing_that_it_does_not_need(tmp_path: File) -> None:
    with on_docker(tmp_path) as provider:
        bounds = replace(provider.bounds, memory_mb=256, disk_mb=64, processes=20)
        tell(ran(provider, bounds=bounds))
        [asked] = provider.service.created  # type: ignore[attr-defined]
    config = asked["HostConfig"]
    assert asked["User"] == "65534:65534"
    assert asked["Labels"] == {"carrel.order": "run_1"}
    assert config["NetworkMode"] == "none"
    assert config["Memory"] == config["MemorySwap"] == 256 * 2**20
    assert 20 <= config["PidsLimit"] < 40
    assert config["CapDrop"] == ["ALL"]
    assert config["SecurityOpt"] == ["no-new-privileges:true"]
    assert config["ReadonlyRootfs"] and config["AutoRemove"]
    assert "size=64m" in config["Tmpfs"]["/tmp"]
    volume = config["Mounts"][0]["VolumeOptions"]["DriverConfig"]["Options"]
    assert volume["type"] == "tmpfs" and volume["o"].startswith("size=64m,")


def test_a_record_chooses_among_the_images_that_are_allowed(tmp_path: File) -> None:
    with on_docker(tmp_path) as provider:
        bounds = replace(provider.bounds, network=True)
        tell(ran(provider, options={"image": "debian:13-slim"}, bounds=bounds))
        [asked] = provider.service.created  # type: ignore[attr-defined]
        assert "python:3.13-slim, debian" in refused(provider, options={"image": "evil:latest"})
    assert (asked["Image"], asked["HostConfig"]["NetworkMode"]) == ("debian:13-slim", "bridge")


def test_an_image_that_the_engine_lacks_is_named_as_the_reason(tmp_path: File) -> None:
    with on_docker(tmp_path) as provider:
        sandbox = provider.sandbox
        assert isinstance(sandbox, DockerSandbox)
        sandbox._host = replace(sandbox._host, images=("other:1",))
        assert "image" in refused(provider)


def test_an_engine_that_is_not_there_refuses() -> None:
    away = DockerSandbox(DockerHost("tcp://127.0.0.1:1", ("python:3.13-slim",)))
    assert "Docker" in refused(Provider(away, None))  # type: ignore[arg-type]


def has_begun(root: File) -> bool:
    return bool(list(root.glob("*/*/f")))


def lost(opens: Opens, root: File) -> CommandResult:
    """A command whose machine is gone before it has ended."""

    async def story(provider: Provider) -> CommandResult:
        service: Any = provider.service
        task = asyncio.create_task(ran(provider, "echo said; echo 1 >f; sleep 60"))
        await wait_until(lambda: has_begun(root), "the command has begun")
        computers = getattr(service, "computers", None)
        if computers is None:
            computers = {name: one.computer for name, one in service.containers.items()}
        for computer in computers.values():
            computer.destroy()
        async with asyncio.timeout(30):
            return await task

    with opens(root) as provider:
        ended: CommandResult = tell(story(provider))
        assert provider.service.alive == []
    return ended


@pytest.mark.parametrize("name", ["docker", "kubernetes", "e2b", "daytona"])
def test_a_machine_that_is_lost_leaves_nothing_half(name: str, tmp_path: File) -> None:
    ended = lost(ELSEWHERE[name], tmp_path)

    assert ended.exit_code not in {0, None}
    assert (ended.changed, ended.deleted) == ({}, frozenset())
    assert ended.discard_reason


def test_a_pod_is_as_the_restricted_standard_wants_it(tmp_path: File) -> None:
    with on_kubernetes(tmp_path) as provider:
        tell(ran(provider, bounds=replace(provider.bounds, memory_mb=256, disk_mb=64)))
        tell(ran(provider, bounds=replace(provider.bounds, network=True)))
        pod, online = provider.service.created  # type: ignore[attr-defined]
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert pod["metadata"]["namespace"] == "offline"
    assert online["metadata"]["namespace"] == "online"
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] >= 30
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"] == "256Mi"
    assert [each["emptyDir"] for each in spec["volumes"]] == [{"sizeLimit": "64Mi"}] * 2


def test_a_pod_that_cannot_start_says_why(tmp_path: File) -> None:
    with on_kubernetes(tmp_path) as provider:
        provider.service.hindrance = "InvalidImageName"  # type: ignore[attr-defined]
        assert "InvalidImageName" in refused(provider)


def test_a_network_that_nobody_can_promise_is_refused(tmp_path: File) -> None:
    for setting in ({"kubernetes_config": "x"}, {"lambda_online_function": "f"}):
        [sandbox] = remote_sandboxes(load(setting, environ={}, file=tmp_path / "none")).values()
        bounds = Provider.bounds
        assert "without network access" in (sandbox.unsupported_reason(bounds) or "")


def test_lambda_takes_and_gives_only_so_much(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        noise = secrets.token_bytes(5_000_000)
        assert "6291456" in refused(provider, files={"noise": noise})
        ended = tell(ran(provider, "head -c 5000000 /dev/urandom >noise"))
        assert ended.discard_reason and "5000000 bytes" in ended.discard_reason
        assert (ended.changed, ended.exit_code) == ({}, 0)


def test_lambda_leaves_nothing_for_the_next_command(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        service: Any = provider.service
        tell(ran(provider, 'echo 1 >"$TMPDIR/x"; echo 2 >../../beside; mkdir -m 0 ../../locked'))
        assert service.left == []


def test_a_function_that_was_ended_keeps_nothing(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        service: Any = provider.service
        service.fails = True
        ended = tell(ran(provider, "echo 1 >f"))
        assert (ended.exit_code, ended.changed) == (137, {})
        assert ended.discard_reason


def test_a_function_that_cannot_keep_a_bound_runs_nothing(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        service: Any = provider.service
        assert "lower limit" in refused(provider, bounds=replace(provider.bounds, memory_mb=256))
        assert "840" in refused(provider, bounds=replace(provider.bounds, seconds=841))
        service.memory_mb = 2048
        assert "2048 MB" in refused(provider)
        service.memory_mb, service.milliseconds = 512, 3000
        assert "timeout" in refused(provider)
        service.names = set()
        assert "ResourceNotFoundException" in refused(provider)


def test_e2b_has_no_network_unless_it_is_asked_for(tmp_path: File) -> None:
    with on_e2b(tmp_path) as provider:
        service: Any = provider.service
        tell(ran(provider, options={"template": "tools"}))
        tell(ran(provider, bounds=replace(provider.bounds, network=True)))
        assert [each["allow_internet_access"] for each in service.created] == [False, True]
        assert [each["templateID"] for each in service.created] == ["tools", "base"]
        service.memory_mb = 4096
        assert "4096 MB" in refused(provider)


def test_daytona_is_believed_only_where_it_says_that_the_network_is_blocked(
    tmp_path: File,
) -> None:
    with on_daytona(tmp_path) as provider:
        service: Any = provider.service
        tell(ran(provider, bounds=replace(provider.bounds, network=True)))
        service.blocks = False
        assert "network" in refused(provider)
        service.blocks, service.memory = True, 4
        assert "4096 MB" in refused(provider)
        assert [each["networkBlockAll"] for each in service.created] == [False, True, True]


def test_there_are_only_the_providers_that_somebody_has_set_up(tmp_path: File) -> None:
    nothing = load({}, environ={}, file=tmp_path / "none")
    assert remote_sandboxes(nothing) == {}
    keys = {
        "docker_host": "unix:///x",
        "lambda_function": "f",
        "kubernetes_config": "cluster",
        "e2b_api_key": "k",
        "daytona_api_key": "k",
    }
    found = remote_sandboxes(load(keys, environ={}, file=tmp_path / "none"))
    assert {name: each.tier for name, each in found.items()} == {
        name: name for name in ("docker", "lambda", "kubernetes", "e2b", "daytona")
    }


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "carrel.adapters.sandbox.docker", None)
    with pytest.raises(SettingsError, match="CARREL_DOCKER_HOST needs the extra `docker`"):
        sandbox_providers.remote_sandboxes(load({"docker_host": "unix:///x"}, environ={}))
