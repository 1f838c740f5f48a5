"""Quality of recall on a labelled set, beside FTS5's own BM25 over the same texts.

The set is in `recall_set/`: 75 facts and 38 questions in each of four languages, and the parts from
which neutral and wordy distractors are put together.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path as File

from bench.report import Results
from carrel.actions.agents.agents import NewAgent, create
from carrel.actions.memory import memories
from carrel.adapters.system_clock import SystemClock
from carrel.core.access import Actor
from carrel.core.memory.memory import memory_change, new_memory
from carrel.core.runs import Audience
from carrel.core.search.full_text import distinct_terms, parse_query, tokenize
from carrel.core.store.commit import Commit
from carrel.ports import Ports
from carrel.settings import load
from carrel.wiring.ports import open_ports

SIZE = int(os.environ.get("BENCH_DISTRACTORS", "10000"))
GOAL = 0.97
_FOLDER = File(__file__).parent / "recall_set"
_LANGUAGES = ("en", "es", "zh", "th")
_WITHOUT_SPACES = ("zh", "th")
_OWNER = Actor("acme", "bench")
_TOP = 5


@dataclass(frozen=True, slots=True)
class Quality:
    recall: float
    """Share of the questions whose fact is among the first five."""
    mrr: float
    """Mean reciprocal rank of the fact, among the first fifty."""


def load_pairs(language: str) -> list[tuple[str, str]]:
    """Facts with their questions; the question is empty for some."""
    lines = (_FOLDER / f"{language}.tsv").read_text("utf-8").splitlines()
    return [(fact, question) for fact, question in (line.split("\t") for line in lines)]


def make_distractors(language: str, kind: str, count: int) -> list[str]:
    parts = json.loads((_FOLDER / "distractors.json").read_text("utf-8"))[language][kind]
    separator = "" if language in _WITHOUT_SPACES else " "
    return [separator.join(texts) for texts in islice(product(*parts), count)]


def shared_questions(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Facts and questions that have a content word in common."""
    return [
        (fact, question)
        for fact, question in pairs
        if question and set(parse_query(question).content) & set(distinct_terms(fact))
    ]


async def measure(settings: dict[str, str], store_name: str, results: Results) -> None:
    """Add a row for each language and kind of distractors."""
    async with open_ports(load(settings)) as store:
        for language, kind in product(_LANGUAGES, ("none", "neutral", "wordy")):
            pairs = load_pairs(language)
            others = [] if kind == "none" else make_distractors(language, kind, SIZE)
            texts = [*(fact for fact, _ in pairs), *others]
            agent = await create(store.ports, _OWNER, NewAgent(f"{language}-{kind}", language))
            await remember_texts(store.ports, _OWNER, agent.id, texts)
            questions = shared_questions(pairs)
            ours = await measure_carrel(store.ports, _OWNER, agent.id, questions)
            plain = _measure_fts5(texts, questions, language in _WITHOUT_SPACES)
            cell = f"{store_name}, {language}, {len(others):,} {kind} distractors"
            for name, our_figure, plain_figure, goal in (
                ("recall@5", ours.recall, plain.recall, max(GOAL, plain.recall)),
                ("MRR", ours.mrr, plain.mrr, plain.mrr),
            ):
                results.record(f"{name}, {cell}", our_figure)
                results.goal_row(f"{name}, {cell}", our_figure, goal)
                results.figure_row(f"{name}, plain FTS5, {cell}", plain_figure)


async def remember_texts(ports: Ports, owner: Actor, agent: str, texts: Sequence[str]) -> None:
    """Store facts first, so that no distractor is older."""
    now, clock = ports.clock.now(), SystemClock()
    for start in range(0, len(texts), 500):
        changes = tuple(
            memory_change(
                owner.tenant, new_memory(clock.new_id("mem"), agent, text, Audience.MAIN, now), 0
            )
            for text in texts[start : start + 500]
        )
        await ports.trees.commit([Commit((), "bench", "", now, changes=changes)])


async def measure_carrel(
    ports: Ports, owner: Actor, agent: str, questions: Sequence[tuple[str, str]]
) -> Quality:
    ranks = []
    for fact, question in questions:
        hits = await memories.search(ports, owner, agent, question, limit=50)
        ranks.append(_rank(fact, [hit.memory.content for hit in hits]))
    return _quality(ranks)


def _measure_fts5(
    texts: Sequence[str], questions: Sequence[tuple[str, str]], use_trigrams: bool
) -> Quality:
    """Rank by FTS5's bm25 with the tokenizer that suits the language best."""
    tokenizer = "trigram" if use_trigrams else "unicode61"
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = '{tokenizer}')")
        db.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])
        ranks = []
        for fact, question in questions:
            match = " OR ".join(f'"{term}"' for term in _fts5_terms(question, use_trigrams))
            rows = db.execute(
                "SELECT text FROM t WHERE t MATCH ? ORDER BY bm25(t), rowid DESC LIMIT 50", (match,)
            )
            ranks.append(_rank(fact, [text for (text,) in rows]))
    return _quality(ranks)


def _fts5_terms(question: str, use_trigrams: bool) -> list[str]:
    plain = question.strip("?\uff1f¿ ")
    if not use_trigrams:
        return list(tokenize(plain))
    return [plain[start : start + 3] for start in range(len(plain) - 2)]


def _rank(fact: str, texts: Sequence[str]) -> int:
    return texts.index(fact) + 1 if fact in texts else 0


def _quality(ranks: Sequence[int]) -> Quality:
    return Quality(
        sum(1 <= rank <= _TOP for rank in ranks) / len(ranks),
        sum(1 / rank for rank in ranks if rank) / len(ranks),
    )
