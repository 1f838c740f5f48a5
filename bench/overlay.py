"""Cold starts: composed workspaces, cached and uncached, next to constant bytes."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path as File
from time import perf_counter

import carrel
from bench.cases import SECONDS
from bench.report import Results
from bench.server import TOKEN, RunningServer
from carrel.defaults import FILES

FOLLOWERS = 4_000
CONNECTION_COUNTS = (1, 16)
ACCEPTS = tuple(map(int, os.environ.get("BENCH_ACCEPTS", "10000,100000").split(",")))
_LINE = "{{AGENT_NAME}} keeps to what was agreed with {{HUMAN_NAME}}. "


_PERSONAL = ("IDENTITY.md", "USER.md", "SOUL.md")
"""Files with placeholders: the packaged ones and one more."""


def text(path: str) -> str:
    """A file of 3.4 KB, so that twelve are 40 KB."""
    line = _LINE if path in _PERSONAL else "Keep to what was agreed. "
    return (f"# {path}\n\n" + line * 4 + "\n").ljust(3_413, "x")


async def prepare(data: File, on_progress: Callable[[int], None]) -> list[str]:
    """Create a template with twelve files and its agents. Returns the agents' slugs."""
    slugs = [f"agent-{n:05}" for n in range(FOLLOWERS)]
    async with carrel.open(data) as client:
        await client.templates.create("sales", "Sales")
        for path in (*FILES, "AGENTS.md"):
            await client.template("sales").put(path, text(path))
        for start in range(0, FOLLOWERS, 64):
            batch = slugs[start : start + 64]
            await asyncio.gather(
                *(client.agents.create(slug, slug.title(), template_id="sales") for slug in batch)
            )
            on_progress(len(batch))
    return slugs


def url(slug: str) -> str:
    return f"/v1/agents/{slug}/files?content=true"


def measure_round(results: Results, server: RunningServer, slugs: list[str], number: int) -> None:
    warm_url = url(slugs[0])
    size = len(server.ask("GET", warm_url))
    for load in CONNECTION_COUNTS:
        etag = server.etag(warm_url)
        common = {"connections": load, "seconds": SECONDS, "cpu": 1}
        constant = server.load(paths=[f"/bench/constant?size={size}"], **common)
        empty = server.load(paths=["/bench/constant?size=0"], **common)
        warm = server.load(token=TOKEN, paths=[warm_url], **common)
        unchanged = server.load(token=TOKEN, paths=[warm_url], tag=etag, **common)
        results.record(f"constant 40 KB, {load}", constant.rate)
        results.record(f"nothing, {load}", empty.rate)
        results.record(f"cold start, known, {load}", warm.rate)
        results.record(f"304, {load}", unchanged.rate)
        _edit(server, f"{number} {load}")
        new = server.load(
            token=TOKEN, paths=[url(slug) for slug in slugs], **common | {"once": True}
        )
        results.record(f"cold start, new, {load}", new.rate)
    _recovery(results, server, slugs[:1_000], number)


def _recovery(results: Results, server: RunningServer, slugs: list[str], number: int) -> None:
    """After an edit, check every agent's first read and measure the second one."""
    common = {"token": TOKEN, "paths": [url(slug) for slug in slugs] * 5, "connections": 16}
    common |= {"cpu": 1, "once": True, "seconds": 60.0}
    server.load(**common)
    results.record("followers, before", server.load(**common).rate)
    mark = f"edit {number}"
    _edit(server, mark)
    wrong = sum(mark not in _read_soul(server, slug) for slug in slugs)
    results.record("followers, wrong", wrong)
    results.record("followers, after", server.load(**common).rate)


def _read_soul(server: RunningServer, slug: str) -> str:
    rows = json.loads(server.ask("GET", url(slug)))["files"]
    [soul] = [row["content"] for row in rows if row["path"] == "SOUL.md"]
    return soul if slug.title() in soul else ""


def _edit(server: RunningServer, mark: str) -> None:
    path = "/v1/templates/sales/files/SOUL.md"
    server.ask("PUT", path, {"content": f"{mark}\n{text('SOUL.md')}"[:3_413]})


def add_rows(results: Results) -> None:
    for load in CONNECTION_COUNTS:
        case = f"{load} connection{'s' * (load > 1)}"
        cold = "cold start of 12 files, 40 KB"
        constant = f"constant 40 KB, {load}"
        results.ratio(
            f"{cold}, cached / constant, {case}",
            f"cold start, known, {load}",
            constant,
            at_least=0.6,
        )
        results.ratio(
            f"{cold}, uncached / constant, {case}",
            f"cold start, new, {load}",
            constant,
            at_least=0.2,
        )
        results.ratio(
            f"304 / empty constant, {case}", f"304, {load}", f"nothing, {load}", at_least=0.6
        )
    results.ratio(
        "1,000 followers, second read after an edit / before it",
        "followers, after",
        "followers, before",
        at_least=0.8,
    )
    label = "1,000 followers, wrong first reads after an edit"
    results.figure(label, "followers, wrong", "", 1, at_most=0)


async def accept(data: File, agents: int, on_progress: Callable[[int], None]) -> float:
    """Accept an update for all agents of a template. Returns seconds per agent."""
    async with carrel.open(data) as client:
        await client.templates.create("sales", "Sales")
        for start in range(0, agents, 64):
            batch = range(start, min(start + 64, agents))
            await asyncio.gather(
                *(client.agents.create(f"a-{n}", f"A {n}", template_id="sales") for n in batch)
            )
            on_progress(len(batch))
        better = await client.template("sales").put("GUARDRAILS.md", "be better")
        began = perf_counter()
        results = await client.template("sales").accept("GUARDRAILS.md", better.sha256)
        took = perf_counter() - began
    assert sum(result.changed for result in results) == agents
    return took / agents


def accept_rows(results: Results) -> None:
    smallest, largest = ACCEPTS[0], ACCEPTS[-1]
    label = f"accepting for all {smallest:,} agents of a template"
    results.figure(label, f"accept, {smallest}", "s", smallest, at_most=2 * smallest / 10_000)
    label = f"accepting, an agent of {largest:,} / of {smallest:,}"
    results.ratio(label, f"accept, {largest}", f"accept, {smallest}", at_most=1.2)
