"""Requests, refusals and failures of each remote provider."""

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
    REMOTE_PROVIDERS,
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


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def run_command(provider: Provider, command: str = "true", **more: Any) -> CommandResult:
    async with provider.run_command(command, **more) as ended:
        return ended


def refusal_of(provider: Provider, **more: Any) -> str:
    with pytest.raises(SandboxUnavailable) as problem:
        run_async(run_command(provider, **more))
    assert getattr(provider.service, "alive", []) == []
    return str(problem.value)


def test_container_has_no_unneeded_privileges(tmp_path: File) -> None:
    with on_docker(tmp_path) as provider:
        bounds = replace(provider.bounds, memory_mb=256, disk_mb=64, processes=20)
        run_async(run_command(provider, bounds=bounds))
        [request] = provider.service.created  # type: ignore[attr-defined]
    config = request["HostConfig"]
    assert request["User"] == "65534:65534"
    assert request["Labels"] == {"carrel.order": "run_1"}
    assert config["NetworkMode"] == "none"
    assert config["Memory"] == config["MemorySwap"] == 256 * 2**20
    assert 20 <= config["PidsLimit"] < 40
    assert config["CapDrop"] == ["ALL"]
    assert config["SecurityOpt"] == ["no-new-privileges:true"]
    assert config["ReadonlyRootfs"] and config["AutoRemove"]
    assert "size=64m" in config["Tmpfs"]["/tmp"]
    volume = config["Mounts"][0]["VolumeOptions"]["DriverConfig"]["Options"]
    assert volume["type"] == "tmpfs" and volume["o"].startswith("size=64m,")


def test_sandbox_record_chooses_among_the_allowed_images(tmp_path: File) -> None:
    with on_docker(tmp_path) as provider:
        bounds = replace(provider.bounds, network=True)
        run_async(run_command(provider, options={"image": "debian:13-slim"}, bounds=bounds))
        [request] = provider.service.created  # type: ignore[attr-defined]
        assert "python:3.13-slim, debian" in refusal_of(provider, options={"image": "evil:latest"})
    assert (request["Image"], request["HostConfig"]["NetworkMode"]) == ("debian:13-slim", "bridge")


def test_image_unknown_to_the_engine_is_named_in_the_refusal(tmp_path: File) -> None:
    with on_docker(tmp_path) as provider:
        sandbox = provider.sandbox
        assert isinstance(sandbox, DockerSandbox)
        sandbox._host = replace(sandbox._host, images=("other:1",))
        assert "image" in refusal_of(provider)


def test_unreachable_engine_refuses() -> None:
    away = DockerSandbox(DockerHost("tcp://127.0.0.1:1", ("python:3.13-slim",)))
    assert "Docker" in refusal_of(Provider(away, None))  # type: ignore[arg-type]


def has_begun(root: File) -> bool:
    return bool(list(root.glob("*/*/f")))


def run_until_lost(opens: Opens, root: File) -> CommandResult:
    """Run a command whose machine is lost before the command ends."""

    async def scenario(provider: Provider) -> CommandResult:
        service: Any = provider.service
        task = asyncio.create_task(run_command(provider, "echo said; echo 1 >f; sleep 60"))
        await wait_until(lambda: has_begun(root), "the command has begun")
        computers = getattr(service, "computers", None)
        if computers is None:
            computers = {name: container.computer for name, container in service.containers.items()}
        for computer in computers.values():
            computer.destroy()
        async with asyncio.timeout(30):
            return await task

    with opens(root) as provider:
        ended: CommandResult = run_async(scenario(provider))
        assert provider.service.running_instances == []
    return ended


@pytest.mark.parametrize("name", ["docker", "kubernetes", "e2b", "daytona"])
def test_lost_machine_leaves_no_partial_result(name: str, tmp_path: File) -> None:
    ended = run_until_lost(REMOTE_PROVIDERS[name], tmp_path)

    assert ended.exit_code not in {0, None}
    assert (ended.changed, ended.deleted) == ({}, frozenset())
    assert ended.discard_reason


def test_pod_meets_the_restricted_pod_security_standard(tmp_path: File) -> None:
    with on_kubernetes(tmp_path) as provider:
        run_async(run_command(provider, bounds=replace(provider.bounds, memory_mb=256, disk_mb=64)))
        run_async(run_command(provider, bounds=replace(provider.bounds, network=True)))
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
    assert [volume["emptyDir"] for volume in spec["volumes"]] == [{"sizeLimit": "64Mi"}] * 2


def test_pod_that_cannot_start_reports_the_reason(tmp_path: File) -> None:
    with on_kubernetes(tmp_path) as provider:
        provider.service.start_problem = "InvalidImageName"  # type: ignore[attr-defined]
        assert "InvalidImageName" in refusal_of(provider)


def test_network_setting_without_a_guarantee_is_refused(tmp_path: File) -> None:
    for setting in ({"kubernetes_config": "x"}, {"lambda_online_function": "f"}):
        [sandbox] = remote_sandboxes(load(setting, environ={}, file=tmp_path / "none")).values()
        bounds = Provider.bounds
        assert "without network access" in (sandbox.unsupported_reason(bounds) or "")


def test_lambda_limits_request_and_response_size(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        noise = secrets.token_bytes(5_000_000)
        assert "6291456" in refusal_of(provider, files={"noise": noise})
        ended = run_async(run_command(provider, "head -c 5000000 /dev/urandom >noise"))
        assert ended.discard_reason and "5000000 bytes" in ended.discard_reason
        assert (ended.changed, ended.exit_code) == ({}, 0)


def test_lambda_leaves_no_files_for_the_next_command(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        service: Any = provider.service
        run_async(
            run_command(
                provider, 'echo 1 >"$TMPDIR/x"; echo 2 >../../beside; mkdir -m 0 ../../locked'
            )
        )
        assert service.leftovers == []


def test_lambda_that_was_terminated_returns_no_changes(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        service: Any = provider.service
        service.fails = True
        ended = run_async(run_command(provider, "echo 1 >f"))
        assert (ended.exit_code, ended.changed) == (137, {})
        assert ended.discard_reason


def test_lambda_that_cannot_enforce_a_limit_runs_nothing(tmp_path: File) -> None:
    with on_lambda(tmp_path) as provider:
        service: Any = provider.service
        assert "lower limit" in refusal_of(provider, bounds=replace(provider.bounds, memory_mb=256))
        assert "840" in refusal_of(provider, bounds=replace(provider.bounds, seconds=841))
        service.memory_mb = 2048
        assert "2048 MB" in refusal_of(provider)
        service.memory_mb, service.milliseconds = 512, 3000
        assert "timeout" in refusal_of(provider)
        service.names = set()
        assert "ResourceNotFoundException" in refusal_of(provider)


def test_e2b_has_no_network_unless_requested(tmp_path: File) -> None:
    with on_e2b(tmp_path) as provider:
        service: Any = provider.service
        run_async(run_command(provider, options={"template": "tools"}))
        run_async(run_command(provider, bounds=replace(provider.bounds, network=True)))
        assert [request["allow_internet_access"] for request in service.created] == [False, True]
        assert [request["templateID"] for request in service.created] == ["tools", "base"]
        service.memory_mb = 4096
        assert "4096 MB" in refusal_of(provider)


def test_daytona_without_confirmed_network_block_is_refused(
    tmp_path: File,
) -> None:
    with on_daytona(tmp_path) as provider:
        service: Any = provider.service
        run_async(run_command(provider, bounds=replace(provider.bounds, network=True)))
        service.blocks = False
        assert "network" in refusal_of(provider)
        service.blocks, service.memory = True, 4
        assert "4096 MB" in refusal_of(provider)
        assert [request["networkBlockAll"] for request in service.created] == [False, True, True]


def test_only_configured_providers_are_available(tmp_path: File) -> None:
    nothing = load({}, environ={}, file=tmp_path / "none")
    assert remote_sandboxes(nothing) == {}
    keys = {
        "docker_host": "unix:///x",
        "lambda_function": "f",
        "kubernetes_config": "cluster",
        "e2b_api_key": "k",
        "daytona_api_key": "k",
    }
    providers = remote_sandboxes(load(keys, environ={}, file=tmp_path / "none"))
    assert {name: provider.tier for name, provider in providers.items()} == {
        name: name for name in ("docker", "lambda", "kubernetes", "e2b", "daytona")
    }


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "carrel.adapters.sandbox.docker", None)
    with pytest.raises(SettingsError, match="CARREL_DOCKER_HOST needs the extra `docker`"):
        sandbox_providers.remote_sandboxes(load({"docker_host": "unix:///x"}, environ={}))
