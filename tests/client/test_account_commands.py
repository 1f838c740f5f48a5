"""``carrel sandboxes`` and ``carrel workspaces`` against a running server."""

from __future__ import annotations

import json
import re

from tests.client.cli_runner import run_command as carrel
from tests.support.server_process import TOKEN, Live


def test_sandboxes_are_listed_added_and_removed(live: Live) -> None:
    around = {"url": live.url, "token": TOKEN}
    config = '{"permissionMode": "bypass", "envVars": {"A": "canary-4711"}}'
    added = carrel("sandboxes", "add", "quick", "--config", config, **around)
    assert added.returncode == 0, added.stderr
    id = added.stdout.strip()
    assert re.fullmatch("sb_[0-9a-f]{24}", id)
    listed = carrel("sandboxes", "ls", **around)
    assert f"{id}  quick  local  bypass\n" in listed.stdout
    rows = json.loads(carrel("sandboxes", "ls", "--json", **around).stdout)
    assert [row["config"]["envVars"] for row in rows if row["sandboxId"] == id] == [
        {"A": "********"}
    ]
    removed = carrel("sandboxes", "rm", id, "--yes", **around)
    assert (removed.returncode, removed.stdout) == (0, f"{id}: deleted\n")
    again = carrel("sandboxes", "rm", id, "--yes", "--json", **around)
    assert again.returncode == 1
    assert json.loads(again.stdout) == {"ok": False, "problem": "Sandbox not found"}


def test_workspace_is_removed_only_after_confirmation(live: Live) -> None:
    around = {"url": live.url, "token": TOKEN}
    shown = carrel("workspaces", "add", "notes", "--description", "ours", "--json", **around)
    id = json.loads(shown.stdout)["workspaceId"]
    assert carrel("workspaces", "rm", id, **around).returncode == 1
    assert f"{id}  notes  ours\n" in carrel("workspaces", "ls", **around).stdout
    assert carrel("workspaces", "rm", id, "--yes", **around).returncode == 0
    assert id not in carrel("workspaces", "ls", **around).stdout


def test_invalid_config_is_refused_before_a_request(live: Live) -> None:
    around = {"url": live.url, "token": TOKEN}
    for wrong, told in (("{", "invalid JSON"), ("[]", "must be a JSON object")):
        done = carrel("sandboxes", "add", "x", "--config", wrong, **around)
        assert (done.returncode, told in done.stderr) == (2, True)
    refused = carrel("sandboxes", "add", "x", "--config", '{"timeout": 0}', **around)
    assert refused.returncode == 1
    assert "config.timeout must be a positive integer" in refused.stderr
