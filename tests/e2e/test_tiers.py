"""What a server tells of the walls that its commands have."""

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
    """Whom the kernel lets look into a process: root alone, where it has closed itself."""
    return File(f"/proc/{pid}/environ").stat().st_uid


@pytest.mark.parametrize(("asked", "tier"), [("auto", "bubblewrap"), ("off", "none")])
def test_a_server_tries_its_walls_and_says_which_hold(
    asked: str, tier: str, tmp_path: File
) -> None:
    with serving(tmp_path, sandbox=asked) as live:
        with httpx.Client(base_url=live.url, verify=PLAIN) as http:

            def sandbox() -> Any:
                return http.get("/readyz").json()["sandbox"]

            wait_until_sync(lambda: sandbox() != {"tier": "untested"}, "the sandbox is tested")
            reported = sandbox()
        kept = "enforced" if cgroups.find_cgroups() else "refused"
        assert reported == {"tier": tier} | ({"memoryLimit": kept} if tier != "none" else {})
        assert owner_of(live.process.pid) == 0, "no process of the same user may look into it"
        live.process.send_signal(signal.SIGTERM)
        live.process.wait()
    assert list((tmp_path / "sandboxes/keepers").iterdir()) == []
