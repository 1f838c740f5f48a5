"""``carrel sync`` for tests: once, or watching in its own process."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from click.testing import CliRunner
from tests.client.server_fixture import AgentEditor, json_of
from tests.support.server_process import TOKEN, ServerProcess, command, environment
from tests.support.wait import wait_until_sync

from carrel.cli import main

STATE = ".carrel-sync.json"
PROGRAM = "from carrel_client import requests as asking; asking.FIRST_PAUSE_SECONDS = 0.001\n"
PROGRAM += "from carrel.cli import main; main()"
TIMEOUT_SECONDS = 60.0


@dataclass
class SyncProcess:
    """A directory, an agent, and the command that synchronizes them."""

    live: ServerProcess
    editor: AgentEditor
    dir: File
    report: dict[str, Any] = field(default_factory=dict)
    """The last report."""
    code: int = 0

    def sync(self, *more: str, agent: str = "", settle: str = "0") -> dict[str, Any]:
        agent = agent or self.editor.agent
        arguments = ["sync", agent, str(self.dir), "--once", "--json", "--settle", settle, *more]
        result = CliRunner().invoke(main, [*arguments, "--url", self.live.url, "--token", TOKEN])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        assert TOKEN not in result.output
        self.code = result.exit_code
        self.report = json.loads(result.stdout)
        return self.report

    def assert_settled(self) -> None:
        """Assert that another sync has nothing to do."""
        again = self.sync()
        assert not any(again[name] for name in ("sent", "received", "removedHere", "removedThere"))

    def write(self, path: str, text: str | bytes) -> None:
        file = self.dir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def local_files(self) -> dict[str, str]:
        """The agent's own files in the directory, without the pinned and managed ones."""
        texts: dict[str, str] = {}
        for file in self.dir.rglob("[!.]*"):
            with suppress(FileNotFoundError):  # The file may change during the scan.
                if file.is_file():
                    texts[file.relative_to(self.dir).as_posix()] = file.read_text("utf-8")
        return {path: text for path, text in texts.items() if path not in READ_ONLY_FILES}

    def server_files(self) -> dict[str, str]:
        return {row["path"]: row["content"] for row in self.rows() if row["class"] == "live"}

    def rows(self) -> list[dict[str, Any]]:
        url = f"/v1/agents/{self.editor.agent}/files?content=true&raw=true"
        rows = json_of(self.editor.http.get(url))["files"]
        return [row for row in rows if row["source"].startswith("agent-override")]

    @contextmanager
    def watched(self, *more: str, url: str = "") -> Iterator[subprocess.Popen[str]]:
        """Run a watching process until the block ends."""
        arguments = ["sync", self.editor.agent, str(self.dir), "--settle", "0.05", "--json", *more]
        process = subprocess.Popen(
            [*command(PROGRAM), *arguments],
            env=environment(self.dir, url=url or self.live.url, token=TOKEN),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_until_sync(
                lambda: (self.dir / STATE).exists() or process.poll() is not None,
                "the first sync is done or the process has ended",
            )
            yield process
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
            assert "Traceback" not in errors, errors
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


READ_ONLY_FILES = {"GUARDRAILS.md", "PLATFORM.md", "CAPABILITIES.md", "USER.md"}
