"""Contract of Tallies: after any history they equal what counting everything gives."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, NOW, commit, new_run
from tests.support.contract_stores import Ports

from carrel.core.agents.agent import AgentRecord, agent_change
from carrel.core.fleet.tallies import (
    DAY_MS,
    HOUR_MS,
    SEPARATOR,
    TallyKind,
    day_name,
    hour_name,
)
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import Run, RunStatus
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Applied, Write
from carrel.core.store.entry import OFFERED_REMOVAL, Entry
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio

PATHS: Final = tuple(map(Path, ("GUARDRAILS.md", "SOUL.md", "notes/a.md")))
STEPS: Final = 150
ENDED: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
Counts = Mapping[tuple[str, str], int]


@dataclass
class History:
    """Random changes, and a plain account of what they leave."""

    ports: Ports
    blobs: list[Blob]
    random: random.Random
    agents: dict[str, AgentRecord] = field(default_factory=dict)
    files: dict[tuple[str, Path], tuple[Entry | None, str]] = field(default_factory=dict)
    days: dict[tuple[RecordType, str], int] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    prompts: dict[str, Mapping[str, int]] = field(default_factory=dict)

    async def step(self, number: int) -> None:
        steps = (self.write_agent, self.write_file, self.write_file, self.write_day, self.write_run)
        await self.random.choice(steps)(number)

    async def write_agent(self, number: int) -> None:
        """Create, change or delete an agent, with a file in the same commit."""
        pick, id = self.random, f"agt_{self.random.randrange(6)}"
        new = AgentRecord(
            *(id, f"Agent {number}", pick.choice((None, "tpl_1", "tpl_2"))),
            pins=pick.choice((None, "a" * 32)),
            is_shared=pick.random() < 0.5,
        )
        is_deleted = id in self.agents and pick.random() < 0.3
        change = replace(agent_change(ACME, id, new), expected=None)
        if is_deleted:
            change = RecordChange(ACME, RecordType.AGENT, id, None)
            del self.agents[id]
        else:
            self.agents[id] = new
        await self.apply(change, *([self.new_write(id)] if pick.random() < 0.5 else []))

    async def write_file(self, _: int) -> None:
        await self.apply(None, self.new_write(f"agt_{self.random.randrange(6)}"))

    def new_write(self, agent: str) -> Write:
        """A pin, an override, an own file or a deletion, also of an agent that does not exist."""
        path, pick = self.random.choice(PATHS), self.random
        blob, base = pick.choice(self.blobs), pick.choice([None, *self.blobs])
        entry = None if pick.random() < 0.3 else Entry(blob, base)
        reviewed = pick.choice([None, None, self.blobs[0].digest, OFFERED_REMOVAL])
        if entry is None and reviewed is None:
            if self.files.get((agent, path), (None, ""))[0] is not None:
                del self.files[agent, path]
        else:
            self.files[agent, path] = entry, reviewed or ""
        return Write(Scope(ACME, ScopeKind.AGENT, agent), path, entry, reviewed=reviewed)

    async def write_day(self, number: int) -> None:
        """Create, change or delete a memory or a promotion."""
        pick = self.random
        key = (pick.choice((RecordType.MEMORY, RecordType.PROMOTION)), f"m_{pick.randrange(8)}")
        at = NOW + pick.randrange(5) * DAY_MS
        if key in self.days and pick.random() < 0.4:
            del self.days[key]
            await self.apply(RecordChange(ACME, *key, None))
        else:
            self.days.setdefault(key, at)
            await self.apply(RecordChange(ACME, *key, {"content": f"text {number}"}), at=at)

    async def write_run(self, number: int) -> None:
        """Start or end a run, or record the sizes of its prompt."""
        running = [run for run in self.runs.values() if not run.has_ended]
        if not running or self.random.random() < 0.5:
            at = NOW + self.random.randrange(40) * HOUR_MS
            run = replace(new_run(f"run_{number:04}"), started_at=at)
            [self.runs[run.id]] = await self.ports.runs.start([(run, [run.scope])])
            return
        run = self.random.choice(running)
        if self.random.random() < 0.5:
            sizes = {f"tpl_1{SEPARATOR}runs": 1, f"tpl_1{SEPARATOR}SOUL": number}
            await self.ports.runs.record_prompts([(run, sizes)])
            self.prompts.setdefault(run.id, sizes)
            return
        ended = replace(run, status=self.random.choice(ENDED), ended_at=NOW)
        assert await self.ports.runs.update(ended, run)
        self.runs[run.id] = ended

    async def apply(self, change: RecordChange | None, *writes: Write, **options: Any) -> None:
        changes = () if change is None else (change,)
        [outcome] = await self.ports.trees.commit([commit(*writes, changes=changes, **options)])
        assert isinstance(outcome, Applied), outcome

    def count(self, kind: TallyKind) -> Counts:
        counts = Counter[tuple[str, str]]()
        match kind:
            case TallyKind.AGENTS:
                counts.update(("", _group(agent)) for agent in self.agents.values())
            case TallyKind.FILES:
                counts.update(
                    (path.text, SEPARATOR.join((_group(self.agents[agent]), *_state(*file))))
                    for (agent, path), file in self.files.items()
                    if agent in self.agents
                )
            case TallyKind.RUNS:
                runs = self.runs.values()
                counts.update((hour_name(run.started_at), run.status) for run in runs)
            case TallyKind.PROMPTS:
                for id, sizes in self.prompts.items():
                    day = day_name(self.runs[id].started_at)
                    counts.update({(day, key): value for key, value in sizes.items()})
            case TallyKind.MEMORIES | TallyKind.PROMOTIONS:
                days = (at for (type, _), at in self.days.items() if type.value == kind.value)
                counts.update((day_name(at), "") for at in days)
        return counts


def _group(agent: AgentRecord) -> str:
    visibility = "shared" if agent.is_shared else "private"
    return SEPARATOR.join((agent.template_id or "", agent.pins or "", visibility))


def _state(entry: Entry | None, reviewed: str) -> tuple[str, str, str]:
    if entry is None:
        return "none", "", reviewed
    if entry.base is None:
        return "own", "", reviewed
    state = "pin" if entry.blob == entry.base else "override"
    return state, entry.base.digest.removeprefix("sha256:"), reviewed


async def read_counts(ports: Ports, kind: TallyKind) -> Counts:
    tallies = await ports.tallies.since(ACME, kind)
    return {(tally.name, tally.key): tally.value for tally in tallies}


@pytest.mark.parametrize("seed", range(4))
async def test_after_a_random_history_every_tally_is_what_counting_gives(
    ports: Ports, seed: int
) -> None:
    blobs = await ports.blobs.put([f"text {n}".encode() for n in range(4)])
    history = History(ports, list(blobs), random.Random(seed))
    for number in range(STEPS):
        await history.step(number)

    for kind in TallyKind:
        assert await read_counts(ports, kind) == history.count(kind), kind
    assert await ports.tallies.find_wrong() == ()
    agents = ["marco", *history.agents]  # those of the runs and of the files
    for kind in (TallyKind.RUNS, TallyKind.PROMPTS):
        tallies = await ports.tallies.of_agents(ACME, kind, agents)
        assert {(tally.name, tally.key): tally.value for tally in tallies} == history.count(kind)
        assert await ports.tallies.of_agents(ACME, kind, ["nobody"]) == ()


async def test_tallies_of_concurrent_changes_are_complete(ports: Ports) -> None:
    blobs = await ports.blobs.put([b"one", b"two"])
    history = History(ports, list(blobs), random.Random(7))
    for number in range(6):
        agent = AgentRecord(f"a-{number}", "Agent", "tpl_1")
        history.agents[f"agt_{number}"] = agent
        await history.apply(agent_change(ACME, f"agt_{number}", agent))

    async with ports.twin() as other:
        twin = History(dataclasses.replace(ports, store=other), list(blobs), random.Random(8))
        await asyncio.gather(
            *(history.write_run(number) for number in range(20)),
            *(twin.write_run(1000 + number) for number in range(20)),
            *(part.write_file(number) for part in (history, twin) for number in range(20)),
        )

    assert await ports.tallies.find_wrong() == ()


async def test_a_wrong_tally_is_found_and_rebuilt(ports: Ports) -> None:
    agent = AgentRecord("ann", "Ann", "tpl_1")
    [outcome] = await ports.trees.commit([commit(changes=(agent_change(ACME, "agt_1", agent),))])
    assert isinstance(outcome, Applied)
    right = await read_counts(ports, TallyKind.AGENTS)
    await ports.break_tallies()

    [wrong] = await ports.tallies.find_wrong()
    assert (wrong.tenant, wrong.kind, wrong.kept, wrong.counted) == (ACME, "agents", 18, 1)
    assert await ports.tallies.rebuild() == 1
    assert await ports.tallies.find_wrong() == ()
    assert await read_counts(ports, TallyKind.AGENTS) == right


async def test_tallies_are_read_by_name_and_from_a_name_on(ports: Ports) -> None:
    for hour in range(3):
        run = replace(new_run(f"run_{hour}"), started_at=NOW + hour * HOUR_MS)
        await ports.runs.start([(run, [run.scope])])
    names = [hour_name(NOW + hour * HOUR_MS) for hour in range(3)]

    listed = await ports.tallies.since(ACME, TallyKind.RUNS, names[1])
    assert sorted(tally.name for tally in listed) == names[1:]
    [first] = await ports.tallies.of_names(ACME, TallyKind.RUNS, [names[0], "unknown"])
    assert (first.name, first.key, first.value) == (names[0], "running", 1)
    assert await ports.tallies.total_before(ACME, TallyKind.RUNS, names[2]) == 2
    assert await ports.tallies.since("tnt_other", TallyKind.RUNS) == ()
