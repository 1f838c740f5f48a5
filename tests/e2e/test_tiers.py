"""What a server tells of the walls that its commands have."""

from __future__ import annotations

import signal
import time
from pathlib import Path as File

import httpx
import pytest
from tests.support.server_process import PLAIN, serving

from carrel.adapters.sandbox.local import cgroups


def owner_of(pid: int) -> int:
    """Whom the kernel lets look into a process: root alone, where it has closed itself."""
    return File(f"/proc/{pid}/environ").stat().st_uid


@pytest.mark.parametrize(("asked", "tier"), [("auto", "bubblewrap"), ("off", "none")])
def test_a_server_tries_its_walls_and_says_which_hold(
    asked: str, tier: str, tmp_path: File
) -> None:
    with serving(tmp_path, sandbox=asked) as live:
        end = time.monotonic() + 30
        with httpx.Client(base_url=live.url, verify=PLAIN) as http:
            while (told := http.get("/readyz").json()["sandbox"]) == {"tier": "untested"}:
                assert time.monotonic() < end
        kept = "enforced" if cgroups.find_cgroups() else "refused"
        assert told == {"tier": tier} | ({"memoryLimit": kept} if tier != "none" else {})
        assert owner_of(live.process.pid) == 0, "no process of the same user may look into it"
        live.process.send_signal(signal.SIGTERM)
        live.process.wait()
    assert list((tmp_path / "sandboxes/keepers").iterdir()) == []
