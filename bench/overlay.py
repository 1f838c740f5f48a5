"""Cold starts: composed workspaces, known and new, beside constant bytes of their size."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path as File
from time import perf_counter

import carrel
from bench.cases import SECOND
from bench.server import TOKEN, Running
from bench.table import Book
from carrel.defaults import FILES

FOLLOWERS = 4_000
LOADS = (1, 16)
ACCEPTS = tuple(map(int, os.environ.get("BENCH_ACCEPTS", "10000,100000").split(",")))
_LINE = "{{AGENT_NAME}} keeps to what was agreed with {{HUMAN_NAME}}. "


_PERSONAL = ("IDENTITY.md", "USER.md", "SOUL.md")
"""The files with placeholders, as in the packaged ones and one more."""


def text(path: str) -> str:
    """A file of 3.4 KB, so that twelve are 40 KB."""
    line = _LINE if path in _PERSONAL else "Keep to what was agreed. "
    return (f"# {path}\n\n" + line * 4 + "\n").ljust(3_413, "x")


async def prepare(data: File, tell: Callable[[int], None]) -> list[str]:
    """A template with twelve files, and agents that follow it. Their slugs."""
    slugs = [f"agent-{n:05}" for n in range(FOLLOWERS)]
    async with carrel.open(data) as desk:
        await desk.templates.create("sales", "Sales")
        for path in (*FILES, "AGENTS.md"):
            await desk.template("sales").put(path, text(path))
        for start in range(0, FOLLOWERS, 64):
            some = slugs[start : start + 64]
            await asyncio.gather(
                *(desk.agents.create(slug, slug.title(), template_id="sales") for slug in some)
            )
            tell(len(some))
    return slugs


def url(slug: str) -> str:
    return f"/v1/agents/{slug}/files?content=true"


def round(book: Book, server: Running, slugs: list[str], number: int) -> None:
    known = url(slugs[0])
    size = len(server.ask("GET", known))
    for load in LOADS:
        etag = server.etag(known)
        about = {"connections": load, "seconds": SECOND, "cpu": 1}
        constant = server.load(paths=[f"/bench/constant?size={size}"], **about)
        empty = server.load(paths=["/bench/constant?size=0"], **about)
        again = server.load(token=TOKEN, paths=[known], **about)
        unchanged = server.load(token=TOKEN, paths=[known], tag=etag, **about)
        book.note(f"constant 40 KB, {load}", constant.rate)
        book.note(f"nothing, {load}", empty.rate)
        book.note(f"cold start, known, {load}", again.rate)
        book.note(f"304, {load}", unchanged.rate)
        _edit(server, f"{number} {load}")
        new = server.load(
            token=TOKEN, paths=[url(slug) for slug in slugs], **about | {"once": True}
        )
        book.note(f"cold start, new, {load}", new.rate)
    _recovery(book, server, slugs[:1_000], number)


def _recovery(book: Book, server: Running, slugs: list[str], number: int) -> None:
    """After an edit every follower's first read is right, and its second as quick as ever."""
    about = {"token": TOKEN, "paths": [url(slug) for slug in slugs] * 5, "connections": 16}
    about |= {"cpu": 1, "once": True, "seconds": 60.0}
    server.load(**about)
    book.note("followers, before", server.load(**about).rate)
    mark = f"edit {number}"
    _edit(server, mark)
    wrong = sum(mark not in _soul(server, slug) for slug in slugs)
    book.note("followers, wrong", wrong)
    book.note("followers, after", server.load(**about).rate)


def _soul(server: Running, slug: str) -> str:
    rows = json.loads(server.ask("GET", url(slug)))["files"]
    [soul] = [row["content"] for row in rows if row["path"] == "SOUL.md"]
    return soul if slug.title() in soul else ""


def _edit(server: Running, mark: str) -> None:
    path = "/v1/templates/sales/files/SOUL.md"
    server.ask("PUT", path, {"content": f"{mark}\n{text('SOUL.md')}"[:3_413]})


def rows(book: Book) -> None:
    for load in LOADS:
        case = f"{load} connection{'s' * (load > 1)}"
        cold = "cold start of 12 files, 40 KB"
        constant = f"constant 40 KB, {load}"
        book.ratio(
            f"{cold}, known / constant, {case}",
            f"cold start, known, {load}",
            constant,
            at_least=0.6,
        )
        book.ratio(
            f"{cold}, new / constant, {case}", f"cold start, new, {load}", constant, at_least=0.2
        )
        book.ratio(
            f"304 / empty constant, {case}", f"304, {load}", f"nothing, {load}", at_least=0.6
        )
    book.ratio(
        "1,000 followers, second read after an edit / before it",
        "followers, after",
        "followers, before",
        at_least=0.8,
    )
    what = "1,000 followers, wrong first reads after an edit"
    book.figure(what, "followers, wrong", "", 1, at_most=0)


async def accept(data: File, agents: int, tell: Callable[[int], None]) -> float:
    """Seconds an agent that accepting for all takes."""
    async with carrel.open(data) as desk:
        await desk.templates.create("sales", "Sales")
        for start in range(0, agents, 64):
            some = range(start, min(start + 64, agents))
            await asyncio.gather(
                *(desk.agents.create(f"a-{n}", f"A {n}", template_id="sales") for n in some)
            )
            tell(len(some))
        better = await desk.template("sales").put("GUARDRAILS.md", "be better")
        began = perf_counter()
        results = await desk.template("sales").accept("GUARDRAILS.md", better.sha256)
        took = perf_counter() - began
    assert sum(result.changed for result in results) == agents
    return took / agents


def accept_rows(book: Book) -> None:
    least, most = ACCEPTS[0], ACCEPTS[-1]
    what = f"accepting for all {least:,} agents of a template"
    book.figure(what, f"accept, {least}", "s", least, at_most=2 * least / 10_000)
    what = f"accepting, an agent of {most:,} / of {least:,}"
    book.ratio(what, f"accept, {most}", f"accept, {least}", at_most=1.2)
