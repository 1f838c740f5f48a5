"""What happened in the demo: runs, conversations, what was learnt and what is still open."""

from __future__ import annotations

from typing import Final

from carrel.actions import items
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.demo.context import DemoContext
from carrel.actions.memory import dreams, memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import NewEntry
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience, RunStatus
from carrel.core.store.record import Record

_TALKS: Final = (
    (
        "iris",
        (
            ("user", "I was charged twice this month. Can you look?"),
            ("assistant", "You have two seats since the 3rd: an invitation counts at once."),
            ("user", "Ah. I did not mean to invite anybody yet."),
            ("assistant", "I have taken the invitation back. You will not be charged for it."),
        ),
    ),
    (
        "wren",
        (
            ("user", "Where do new customers get stuck?"),
            ("assistant", "At the import. Four of the last ten stopped at the column mapping."),
            ("tool", "read docs/tone.md"),
            ("assistant", "I would begin the welcome mail with a picture of that step."),
        ),
    ),
    (
        "sage",
        (
            ("user", "What do people call a workspace?"),
            ("assistant", "A folder. Nobody said workspace on their own in nine interviews."),
        ),
    ),
)
_FACTS: Final = (
    "Invoices are sent on the 3rd, and questions come on the 4th",
    "An invitation counts as a seat at once",
    "Tomas wants refunds above 50 with the invoice attached",
    "The export keeps the order of columns since 2.14",
    "The night queue is busiest after nine",
)
_OFTEN: Final = ("when are invoices sent", "invoices", "why two seats", "invitation seat")
"""Asked again every day."""
_ONCE: Final = ("which order do columns have in an export", "night queue")
_HABITS: Final = (
    "Lena opens every onboarding call with a question",
    "New customers stop at the column mapping",
)
DAY: Final = 86_400_000


async def work(stage: DemoContext) -> None:
    """A week of it, the oldest first."""
    for ago in (6, 4, 3, 2, 1):
        day = stage.earlier(ago * DAY)
        await _runs(day, ago)
        await _learning(day, ago)
    await _talks(stage.earlier(DAY // 2))
    await _items(stage.earlier(DAY // 3))
    await _unfinished(stage.earlier(DAY // 24))


async def _run(
    stage: DemoContext, start: RunRequest, ends: RunStatus | None, lasts: TimestampMs = 90_000
) -> str:
    actor = stage.person("tomas")
    run = await runs.start(stage.ports, actor, start)
    if ends:
        later = stage.later(lasts).ports
        await runs.update(later, actor, run.id, status=ends)
    return run.id


async def _runs(day: DemoContext, ago: int) -> None:
    done = RunStatus.COMPLETED
    await _run(day, RunRequest("morning queue", agent="iris"), done)
    await _run(
        day, RunRequest("billing round", agent="otto"), RunStatus.FAILED if ago == 3 else done
    )
    if ago % 2 == 0:
        await _run(day, RunRequest("interview digest", agent="sage"), done, 600_000)
    if ago == 2:
        await _run(day, RunRequest("release draft", agent="ember"), RunStatus.CANCELLED)


async def _learning(day: DemoContext, ago: int) -> None:
    actor = day.person("mara")
    if ago == 6:
        for fact in _FACTS:
            new = NewMemory(fact, tags=("billing",) if "nvoice" in fact else ())
            await memories.remember(day.ports, actor, "otto", new)
        for habit in _HABITS:
            await memories.remember(day.ports, actor, "wren", NewMemory(habit))
    asked = _OFTEN + (_ONCE if ago == 1 else ())
    for question in asked:
        await memories.recall(day.ports, actor, "otto", question)
    for question in ("column mapping", "where do new customers stop"):
        await memories.recall(day.ports, actor, "wren", question)


async def _talks(day: DemoContext) -> None:
    actor = day.person("tomas")
    for agent, talk in _TALKS:
        session = await sessions.start(day.ports, actor, agent, plugin="web")
        said = [NewEntry(role, text, plugin="web") for role, text in talk]
        await sessions.append(day.ports, actor, agent, session.id, said)
        if agent == "iris":
            await sessions.close(day.ports, actor, agent, session.id)


async def _items(day: DemoContext) -> None:
    ports = day.ports
    mine, theirs = day.person("mara"), day.person("jonas")
    await items.put(ports, mine, "scout", "watchlist", "exports, sign-in, seat counting")
    await items.put(ports, mine, "ember", "next-release", "2.15, planned for the second week")
    await items.put(ports, theirs, "quill", "interviews/left", "three, two of them in Lisbon")
    queue = "41 open, 6 older than a day"
    await items.put(ports, day.person("tomas"), "iris", "queue/today", queue)
    await items.publish(ports, mine, "ember", "next-release", "page")


async def _unfinished(day: DemoContext) -> None:
    """A run with a child that goes on, and one that is played again."""
    parent = await _run(day, RunRequest("release draft", agent="ember"), None)
    await _run(day, RunRequest("check the facts", parent=parent), RunStatus.COMPLETED)
    await _run(day, RunRequest("proofread", parent=parent, share_parent=True), None)
    first = await _run(day, RunRequest("seat complaints", agent="atlas"), RunStatus.FAILED)
    await _run(day, RunRequest(replay_of=first), RunStatus.COMPLETED)


async def dream(stage: DemoContext) -> None:
    """One has landed; the other waits for somebody to look at it."""
    for agent in ("otto", "wren"):
        await dreams.sweep(stage.ports, stage.person("mara"), agent)


async def ask(stage: DemoContext, agent: Record, sandbox: Record, workspace: str) -> None:
    """A call that waits for a yes."""
    session = await sessions.start(stage.ports, stage.person("mara"), agent.id, plugin="web")
    command = "rm -r articles/2023 && git commit -am 'Retire old articles'"
    question = ApprovalRequest(
        agent=agent.id,
        tool="bash",
        arguments={"command": command},
        mode=Audience.MAIN,
        workspace=workspace,
        sandbox=sandbox.id,
        sandbox_revision=sandbox.revision,
        session=session.id,
    )
    await approvals.request_approval(stage.ports, stage.person("mara"), question)
