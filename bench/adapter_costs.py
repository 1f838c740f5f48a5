"""Reads and writes through the adapters of runtimes compared with the plain client."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path as File
from typing import Final

from compat.environments import ROOT, prepare_environment
from compat.page import COSTS

from bench.report import Results
from bench.server import TOKEN, RunningServer

RUNTIMES: Final = {
    "agent_framework": "Agent Framework",
    "anthropic": "Anthropic memory tool",
    "deepagents": "deepagents",
    "google_adk": "Google ADK",
    "langgraph": "LangGraph",
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "Pydantic AI",
    "pydantic_ai_harness": "Pydantic AI harness",
    "strands": "Strands",
}
CALLS: Final = 20
"""Calls of each operation in a round, by the adapter and by the plain client in turn."""
GOAL: Final = 0.8


def measure(server: RunningServer, results: Results, runtime: str, rounds: int) -> None:
    """Measure all rounds in the environment of a runtime, which is installed if it is missing."""
    python, labels = prepare_environment(runtime), dict[str, None]()
    for line in _run(python, server, runtime, rounds).splitlines():
        name, by_adapter, by_client = json.loads(line)
        label = f"{RUNTIMES[runtime]}: {name}"
        results.record(f"{label}, calls a second by the adapter", CALLS / by_adapter)
        results.record(f"{label}, calls a second by the client", CALLS / by_client)
        labels[label] = None
    for label in labels:
        above, below = (f"{label}, calls a second by the {side}" for side in ("adapter", "client"))
        results.ratio(label, above, below, at_least=GOAL)


def store(results: Results) -> None:
    """Store the ratios for the page of compatibility."""
    labels = tuple(f"{name}: " for name in RUNTIMES.values())
    rows = [
        {"what": row.label, "value": row.value, "low": row.low, "high": row.high, "goal": row.goal}
        for row in results.rows
        if row.label.startswith(labels)
    ]
    COSTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _run(python: File, server: RunningServer, runtime: str, rounds: int) -> str:
    environment = {name: value for name, value in os.environ.items() if "CARREL_" not in name}
    environment |= {
        "CARREL_URL": f"http://127.0.0.1:{server.port}",
        "CARREL_TOKEN": TOKEN,
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "BENCH_CPUS": "1",
    }
    command = [str(python), "-m", "bench.adapters", runtime, str(rounds), str(CALLS)]
    completed = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return completed.stdout
