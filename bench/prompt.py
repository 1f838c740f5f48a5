"""Prompts of 60,000 characters: assembling and serving them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as File
from time import process_time

import carrel
from bench.cases import SECONDS
from bench.overlay import CONNECTION_COUNTS
from bench.report import Results
from bench.server import TOKEN, RunningServer
from carrel.actions.accounts import tenants
from carrel.actions.prompt import prompts
from carrel.adapters.tokenizers.estimate import EstimateTokens
from carrel.core.access import Actor
from carrel.core.runs import Audience
from carrel.settings import load
from carrel.wiring.ports import open_ports

AGENTS = 200
_FULL = 11_900
_FILES = ("PLATFORM.md", "GUARDRAILS.md", "SOUL.md", "USER.md", "AGENTS.md", "MEMORY.md")


def text(path: str) -> str:
    """Text of a file; five of these exceed the prompt's limit."""
    line = "What was agreed is kept to, and what was not is asked about first.\n"
    paragraph = f"{{{{AGENT_NAME}}}} knows this from {path}.\n{line * 9}\n"
    return (paragraph * 20)[:_FULL]


async def prepare(data: File, on_progress: Callable[[int], None]) -> list[str]:
    """Create agents of one template, with no prompt cached. Returns their slugs."""
    slugs = [f"agent-{n:03}" for n in range(AGENTS)]
    async with carrel.open(data) as client:
        await client.templates.create("full", "Full")
        for path in _FILES:
            await client.template("full").put(path, text(path))
        for slug in slugs:
            await client.agents.create(slug, slug.title(), template_id="full")
            on_progress(1)
    return slugs


async def measure_assembly(data: File, slugs: list[str]) -> float:
    """CPU seconds per uncached prompt, without counting tokens."""
    settings = load({"data": str(data), "tokenizer": "estimate"}, environ={}, file=File("none"))
    async with open_ports(settings) as store:
        ports = replace(store.ports, tokenizer=EstimateTokens())
        owner = await tenants.get_first_owner(ports, tenants.DEFAULT_TENANT_SLUG)
        actor = Actor(owner.tenant, "bench")
        began = process_time()
        for slug in slugs:
            assembled = await prompts.load_agent_prompt(ports, actor, slug, Audience.MAIN)
            assert assembled.chars > 59_000, assembled.chars
        return (process_time() - began) / len(slugs)


def measure_round(results: Results, server: RunningServer, data: File, slugs: list[str]) -> None:
    results.record("seconds a prompt", asyncio.run(measure_assembly(data, slugs)))
    prompt, listing = f"/v1/agents/{slugs[0]}/prompt", f"/v1/agents/{slugs[0]}/files?content=true"
    for connections in CONNECTION_COUNTS:
        common = {"connections": connections, "seconds": SECONDS, "cpu": 1, "token": TOKEN}
        results.record(f"list, {connections}", server.load(paths=[listing], **common).rate)
        results.record(f"prompt, {connections}", server.load(paths=[prompt], **common).rate)


def add_rows(results: Results) -> None:
    label = "CPU of an uncached prompt of 60,000 characters"
    results.figure(label, "seconds a prompt", "ms", 1000, at_most=2)
    for connections in CONNECTION_COUNTS:
        case = f"{connections} connection{'s' * (connections > 1)}"
        above, below = f"prompt, {connections}", f"list, {connections}"
        results.ratio(
            f"cached prompt / cached list of its files, {case}", above, below, at_least=0.9
        )
