"""Common behaviour of the remote providers beyond the contract: they keep nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from tests.support.remote_providers import REMOTE_PROVIDERS, Provider
from tests.support.wait import wait_until

from carrel.ports.sandbox import SandboxUnavailable

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=REMOTE_PROVIDERS, scope="module")
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Provider]:
    with REMOTE_PROVIDERS[request.param](tmp_path_factory.mktemp("provider")) as opened:
        yield opened


async def test_cancelled_command_leaves_no_instance(provider: Provider) -> None:
    seconds = 60 if provider.cancels else 1

    async def forever() -> None:
        async with provider.run_command(
            "sleep 600", bounds=replace(provider.bounds, seconds=seconds)
        ):
            pass

    task = asyncio.create_task(forever())
    await wait_until(lambda: provider.service.running_instances, "an instance is alive")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if not provider.cancels:
        await wait_until(lambda: not provider.service.running_instances, "no instance is alive")

    assert provider.service.running_instances == []


async def test_changes_beyond_the_disk_limit_are_discarded(provider: Provider) -> None:
    bounds = replace(provider.bounds, disk_mb=1)

    async with provider.run_command(
        "for n in 1 2 3; do head -c 500000 /dev/zero >$n; done", bounds=bounds
    ) as ran:
        assert (ran.changed, ran.exit_code) == ({}, 0)
        assert ran.discard_reason and "1500000 bytes" in ran.discard_reason


async def test_provider_keeps_no_instance(provider: Provider) -> None:
    assert provider.sandbox.unsupported_reason(provider.bounds) is None
    assert "does not support persistent sandboxes" in (
        provider.sandbox.unsupported_reason(provider.bounds, persistent=True) or ""
    )
    with pytest.raises(SandboxUnavailable, match="does not support persistent sandboxes"):
        async with provider.run_command("true", instance_key="one"):
            pass
    assert provider.service.running_instances == []


async def test_command_longer_than_one_argument_is_refused(provider: Provider) -> None:
    with pytest.raises(SandboxUnavailable, match="98304"):
        async with provider.run_command("#" * 100_000):
            pass
    assert provider.service.running_instances == []


async def test_unknown_option_is_refused(provider: Provider) -> None:
    with pytest.raises(SandboxUnavailable, match="no option 'hostPath'"):
        async with provider.run_command("true", options={"hostPath": "/"}):
            pass
    assert provider.service.running_instances == []
