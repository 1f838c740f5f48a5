"""Isolation tiers that a server reports."""

from __future__ import annotations

import signal
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.server_process import PLAIN, serving
from tests.support.wait import wait_until_sync

from carrel.adapters.sandbox.local import cgroups


def owner_of(pid: int) -> int:
    """Owner of a process directory: root if the process is not dumpable."""
    return File(f"/proc/{pid}/environ").stat().st_uid


@pytest.mark.parametrize(("setting", "tier"), [("auto", "bubblewrap"), ("off", "none")])
def test_server_tests_its_isolation_and_reports_the_tier(
    setting: str, tier: str, tmp_path: File
) -> None:
    with serving(tmp_path, sandbox=setting) as live:
        with httpx.Client(base_url=live.url, verify=PLAIN) as http:

            def load_status() -> Any:
                return http.get("/readyz").json()["sandbox"]

            wait_until_sync(lambda: load_status() != {"tier": "untested"}, "the sandbox is tested")
            status = load_status()
        limits = "enforced" if cgroups.find_cgroups() else "refused"
        assert status == {"tier": tier} | ({"memoryLimit": limits} if tier != "none" else {})
        assert owner_of(live.process.pid) == 0, "no process of the same user may look into it"
        live.process.send_signal(signal.SIGTERM)
        live.process.wait()
    assert list((tmp_path / "sandboxes/keepers").iterdir()) == []
