"""Prompts: making one of 60,000 characters, and serving it beside the list of its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path as File
from time import process_time

import carrel
from bench.cases import SECOND
from bench.overlay import LOADS
from bench.server import TOKEN, Running
from bench.table import Book
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
    """Five of these fill a prompt, so that the last one is cut."""
    line = "What was agreed is kept to, and what was not is asked about first.\n"
    paragraph = f"{{{{AGENT_NAME}}}} knows this from {path}.\n{line * 9}\n"
    return (paragraph * 20)[:_FULL]


async def prepare(data: File, tell: Callable[[int], None]) -> list[str]:
    """Agents of one template, none of which anybody has asked for yet. Their slugs."""
    slugs = [f"agent-{n:03}" for n in range(AGENTS)]
    async with carrel.open(data) as desk:
        await desk.templates.create("full", "Full")
        for path in _FILES:
            await desk.template("full").put(path, text(path))
        for slug in slugs:
            await desk.agents.create(slug, slug.title(), template_id="full")
            tell(1)
    return slugs


async def assembling(data: File, slugs: list[str]) -> float:
    """Seconds of CPU that a prompt takes which nobody has asked for before, but for its tokens."""
    settings = load({"data": str(data), "tokenizer": "estimate"}, environ={}, file=File("none"))
    async with open_ports(settings) as opened:
        ports = replace(opened.ports, tokenizer=EstimateTokens())
        owner = await tenants.get_first_owner(ports, tenants.DEFAULT_TENANT_SLUG)
        actor = Actor(owner.tenant, "bench")
        began = process_time()
        for slug in slugs:
            shown = await prompts.load_agent_prompt(ports, actor, slug, Audience.MAIN)
            assert shown.chars > 59_000, shown.chars
        return (process_time() - began) / len(slugs)


def round(book: Book, server: Running, data: File, slugs: list[str]) -> None:
    book.note("seconds a prompt", asyncio.run(assembling(data, slugs)))
    prompt, listing = f"/v1/agents/{slugs[0]}/prompt", f"/v1/agents/{slugs[0]}/files?content=true"
    for connections in LOADS:
        about = {"connections": connections, "seconds": SECOND, "cpu": 1, "token": TOKEN}
        book.note(f"list, {connections}", server.load(paths=[listing], **about).rate)
        book.note(f"prompt, {connections}", server.load(paths=[prompt], **about).rate)


def rows(book: Book) -> None:
    what = "CPU of a prompt of 60,000 characters that nobody asked for before"
    book.figure(what, "seconds a prompt", "ms", 1000, at_most=2)
    for connections in LOADS:
        case = f"{connections} connection{'s' * (connections > 1)}"
        above, below = f"prompt, {connections}", f"list, {connections}"
        book.ratio(f"cached prompt / cached list of its files, {case}", above, below, at_least=0.9)
