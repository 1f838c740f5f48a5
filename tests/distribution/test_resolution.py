"""Installing Carrel beside an agent runtime: the versions that a resolver chooses.

Needs a package registry. uv resolves; if it cannot reach the registry, pip does, which has its own
configuration.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from typing import Final

import pytest

ROOT: Final = FilePath(__file__).parents[2]
RUNTIMES: Final = (
    "agent-framework",
    "crewai",
    "google-adk",
    "langgraph",
    "openai-agents",
    "pydantic-ai",
    "strands-agents",
)
CLIENT: Final = (f"carrel-client @ {(ROOT / 'client').as_uri()}",)
SERVER: Final = (f"carrel @ {ROOT.as_uri()}", *CLIENT)
EXTRAS: Final[dict[str, list[str]]] = tomllib.loads(
    (ROOT / "client" / "pyproject.toml").read_text("utf-8")
)["project"]["optional-dependencies"]
"""Requirements of each extra of the client; the first is its runtime."""
EXCLUDES_MCP_2: Final = frozenset({"crewai"})
"""Runtimes whose newest version requires mcp<2, beside which no MCP 2 server can be installed."""
_PINNED: Final = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)", re.MULTILINE)

Versions = dict[str, str]


def resolve(requirements: Sequence[str]) -> Versions:
    """The version of every package that these requirements need."""
    uv = FilePath(sys.executable).with_name("uv")
    if not uv.exists():
        return _resolve_with_pip(requirements)
    command = [str(uv), "pip", "compile", "--quiet", "--system-certs", "--no-header", "-"]
    text = "\n".join(requirements)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(_PINNED.findall(done.stdout))
    if "No solution found" in done.stderr:
        raise AssertionError(done.stderr)
    return _resolve_with_pip(requirements)


def _resolve_with_pip(requirements: Sequence[str]) -> Versions:
    options = ["--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *options, *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packages = (item["metadata"] for item in json.loads(done.stdout)["install"])
    return {package["name"].lower(): package["version"] for package in packages}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_carrel_beside_the_newest_version_of_a_runtime(runtime: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        choices = [[runtime], [runtime, *CLIENT], [runtime, *SERVER]]
        alone, beside_client, beside_server = pool.map(resolve, choices)
    shared = {name: version for name, version in beside_client.items() if name in alone}
    assert shared == alone, "the client changes no version"
    is_newest = beside_server[runtime] == alone[runtime]
    assert is_newest == (runtime not in EXCLUDES_MCP_2), "the server changes not the runtime's"


@pytest.mark.parametrize("extra", EXTRAS)
def test_extra_of_the_client_installs_the_newest_runtime(extra: str) -> None:
    [requirement, *_] = EXTRAS[extra]
    runtime = re.split(r"[<>=]", requirement)[0]
    client = f"carrel-client[{extra}] @ {(ROOT / 'client').as_uri()}"
    with ThreadPoolExecutor(2) as pool:
        alone, with_client = pool.map(resolve, [[runtime], [client]])
    assert with_client[runtime] == alone[runtime]


def test_client_needs_httpx_alone() -> None:
    direct = ROOT / "client" / "pyproject.toml"
    assert 'dependencies = ["httpx>=0.27"]' in direct.read_text("utf-8")
    assert set(resolve(CLIENT)) == set(resolve(["httpx>=0.27"]))
