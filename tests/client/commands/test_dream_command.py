"""``carrel dream`` against a running server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path as File

from tests.client.server_fixture import AgentEditor
from tests.support.server_process import TOKEN, ServerProcess, command, environment


def carrel(
    *arguments: str, live: ServerProcess, token: str = TOKEN
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*command(), *arguments],
        env=environment(File("nowhere"), url=live.url, token=token),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_dream_prints_its_report(editor: AgentEditor, live: ServerProcess) -> None:
    dry = carrel("dream", editor.agent, "--dry-run", live=live)
    assert (dry.returncode, dry.stdout) == (0, "")
    assert dry.stderr == "0 candidates, 0 would be promoted, 0 rejected\n"
    result = carrel("dream", editor.agent, "--json", live=live)
    assert result.returncode == 0
    report = json.loads(result.stdout)
    assert (report["ok"], report["dryRun"], report["promoted"]) == (True, False, [])
    missing = carrel("dream", "unknown", live=live)
    assert missing.returncode == 1
    assert "no such agent: unknown" in missing.stderr
