"""``carrel sandboxes``, ``carrel workspaces`` and ``carrel invite`` against a running server."""

from __future__ import annotations

import json
import re

import httpx
from tests.client.cli_runner import run_command as carrel
from tests.support.server_process import TOKEN, ServerProcess


def test_sandboxes_are_listed_added_and_removed(live: ServerProcess) -> None:
    connection = {"url": live.url, "token": TOKEN}
    config = '{"permissionMode": "bypass", "envVars": {"A": "canary-4711"}}'
    added = carrel("sandboxes", "add", "quick", "--config", config, **connection)
    assert added.returncode == 0, added.stderr
    id = added.stdout.strip()
    assert re.fullmatch("sb_[0-9a-f]{24}", id)
    listed = carrel("sandboxes", "ls", **connection)
    assert f"{id}  quick  local  bypass\n" in listed.stdout
    rows = json.loads(carrel("sandboxes", "ls", "--json", **connection).stdout)
    assert [row["config"]["envVars"] for row in rows if row["sandboxId"] == id] == [
        {"A": "********"}
    ]
    removed = carrel("sandboxes", "rm", id, "--yes", **connection)
    assert (removed.returncode, removed.stdout) == (0, f"{id}: deleted\n")
    again = carrel("sandboxes", "rm", id, "--yes", "--json", **connection)
    assert again.returncode == 1
    assert json.loads(again.stdout) == {"ok": False, "problem": "Sandbox not found"}


def test_workspace_is_removed_only_after_confirmation(live: ServerProcess) -> None:
    connection = {"url": live.url, "token": TOKEN}
    added = carrel("workspaces", "add", "notes", "--description", "ours", "--json", **connection)
    id = json.loads(added.stdout)["workspaceId"]
    assert carrel("workspaces", "rm", id, **connection).returncode == 1
    assert f"{id}  notes  ours\n" in carrel("workspaces", "ls", **connection).stdout
    assert carrel("workspaces", "rm", id, "--yes", **connection).returncode == 0
    assert id not in carrel("workspaces", "ls", **connection).stdout


def test_invalid_config_is_refused_before_a_request(live: ServerProcess) -> None:
    connection = {"url": live.url, "token": TOKEN}
    for wrong, message in (("{", "invalid JSON"), ("[]", "must be a JSON object")):
        done = carrel("sandboxes", "add", "x", "--config", wrong, **connection)
        assert (done.returncode, message in done.stderr) == (2, True)
    refused = carrel("sandboxes", "add", "x", "--config", '{"timeout": 0}', **connection)
    assert refused.returncode == 1
    assert "config.timeout must be a positive integer" in refused.stderr


def test_invite_prints_a_link_that_signs_the_person_in_once(
    live: ServerProcess, http: httpx.Client
) -> None:
    person = {"name": "Ida", "email": "ida@example.org", "role": "member"}
    id = http.post("/v1/people", json=person).raise_for_status().json()["id"]
    connection = {"url": live.url, "token": TOKEN}
    first = carrel("invite", "Ida@example.org", **connection)
    assert first.returncode == 0, first.stderr
    second = json.loads(carrel("invite", id, "--json", **connection).stdout)
    assert second["link"] == f"{live.url}/sign-in#code={second['code']}"
    printed = re.fullmatch(rf"{live.url}/sign-in#code=(\S+)\n", first.stdout)
    assert printed
    codes = (printed[1], second["code"], second["code"])
    exchanged = [http.post("/v1/sign-in", json={"code": code}) for code in codes]
    assert [response.status_code for response in exchanged] == [401, 200, 401]
    invited = carrel("invite", id, url=live.url, token=exchanged[1].json()["token"])
    assert (invited.returncode, invited.stdout) == (1, "")


def test_invite_of_an_unknown_person_is_refused(live: ServerProcess) -> None:
    connection = {"url": live.url, "token": TOKEN}
    for unknown in ("nobody@example.org", "prs_00"):
        done = carrel("invite", unknown, **connection)
        assert (done.returncode, done.stdout) == (1, "")
        assert "no such person" in done.stderr
