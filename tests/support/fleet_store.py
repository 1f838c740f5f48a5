"""The store of a fleet: 1,200 agents, 30 templates, 250 people, 2,000 runs, 1,000 reviews.

It is built through the write path in batches, which takes seconds. Agents have tags, overrides of
live and of pinned files, people and memories; the runs lie in the last 30 days. One agent,
BUSY_AGENT, has more sessions, memories and items than a page of any list.
"""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path as File
from typing import Any, Final, TypeVar

from msgspec.structs import replace
from tests.support.server_process import TOKEN

from carrel.actions import items
from carrel.actions.accounts import keys, people, tenants
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.demo import NoWebhooks
from carrel.actions.events import webhooks
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.overlay import stacks
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.accounts import PersonRecord
from carrel.core.agents.agent import AgentRecord, agent_change, agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.fleet.prompt_sizes import prompt_sizes
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, TimestampMs
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.sessions.session import Session, SessionAppend, SpeakerRole, TranscriptEntry
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Applied, Commit, Write
from carrel.core.store.entry import Entry
from carrel.core.store.record import Record, RecordChange
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult
from carrel.ports import Ports
from carrel.settings import load
from carrel.wiring.ports import open_ports

AGENT_COUNT: Final = 1_200
TEMPLATE_COUNT: Final = 30
PERSON_COUNT: Final = 250
RUN_COUNT: Final = 2_000
KEY_COUNT: Final = 150
"""Keys of agents, one for each of the first agents, beside the owner's."""
AGENTS_PER_TEMPLATE: Final = 40
"""The last template has none: as many agents have no template."""
OWN_PLATFORM_COUNT: Final = 12
"""The first templates have their own PLATFORM.md."""
RULES_EDITED: Final = range(10, 17)
"""Templates whose own GUARDRAILS.md changed after their agents were created."""
PLATFORM_REVIEWS: Final = (TEMPLATE_COUNT - OWN_PLATFORM_COUNT) * AGENTS_PER_TEMPLATE
"""Agents for which an edit of the defaults waits: one group, whatever their template."""
RULES_REVIEWS: Final = len(RULES_EDITED) * AGENTS_PER_TEMPLATE
"""Agents for which the edit of their template waits: a group for each template."""
REVIEW_COUNT: Final = PLATFORM_REVIEWS + RULES_REVIEWS
assert REVIEW_COUNT == 1_000
TAGS: Final = ("beta", "eu", "internal", "night", "us", "vip")
BUSY_AGENT: Final = "agent-0000"
BUSY_COUNT: Final = 130
"""Sessions, memories, items and webhook deliveries of the busy agent and of one webhook."""
FIRST_OWN_OVERRIDES: Final = 3
"""Agents of each template, counted from its first, that override its GUARDRAILS.md."""

SOUL, RULES, PLATFORM, MEMORY, USER = map(
    Path, ("SOUL.md", "GUARDRAILS.md", "PLATFORM.md", "MEMORY.md", "USER.md")
)
_BATCH_SIZE: Final = 500
_DAY_MS: Final = 24 * 3600 * 1000
_ID_TIME_SHIFT: Final = 48
"""Bits of an id below the time of its creation."""
Item = TypeVar("Item")


def agent_slug(number: int) -> str:
    return f"agent-{number:04}"


def template_slug(number: int) -> str:
    return f"team-{number:02}"


def agent_tags(number: int) -> tuple[str, ...]:
    """Tags of an agent: none for one in five, otherwise one or two."""
    if number % 5 == 0:
        return ()
    return tuple(sorted({TAGS[number % len(TAGS)], TAGS[number * number % len(TAGS)]}))


@dataclass(frozen=True, slots=True)
class FleetBuilder:
    """Fills the default tenant of an empty store."""

    ports: Ports
    owner: Actor

    async def build(self) -> None:
        await self._write_defaults(PLATFORM, "# PLATFORM\n\nAnswer within a day.\n")
        templates = [await self._create_template(number) for number in range(TEMPLATE_COUNT)]
        persons = await self._create_people()
        half = TEMPLATE_COUNT // 2 * AGENTS_PER_TEMPLATE
        fleet = await self._create_agents(range(half), persons)
        await self._write_defaults(PLATFORM, "# PLATFORM\n\nAnswer within an hour.\n")
        fleet += await self._create_agents(range(half, AGENT_COUNT), persons)
        await self._commit_all(await self._key_commits(fleet))
        await self._start_runs(fleet)
        await self._fill_busy_agent(fleet[0])
        await self._add_deliveries()
        await self._write_defaults(PLATFORM, "# PLATFORM\n\nAnswer within a minute.\n")
        for number in RULES_EDITED:
            for edit in range(1 + number % 3):
                await self._write(templates[number], RULES, f"# GUARDRAILS\n\nRule {edit + 2}.\n")

    async def _write_defaults(self, path: Path, text: str) -> None:
        await self._write(await stacks.defaults_stack(self.ports, self.owner), path, text)

    async def _write(self, stack: Stack, path: Path, text: str) -> None:
        options = WriteOptions(reason=f"edit {path}")
        await files.put(self.ports, stack, path, text.encode(), self.owner, options)

    async def _create_template(self, number: int) -> Stack:
        name = f"Team {number:02}"
        await templates.create(self.ports, self.owner, template_slug(number), name)
        stack = await stacks.template_stack(self.ports, self.owner, template_slug(number))
        await self._write(stack, SOUL, f"# SOUL\n\n{{{{AGENT_NAME}}}} works for {name}.\n")
        if number in RULES_EDITED:
            await self._write(stack, RULES, "# GUARDRAILS\n\nRule 1.\n")
        if number < OWN_PLATFORM_COUNT:
            await self._write(stack, PLATFORM, f"# PLATFORM\n\nThe platform of {name}.\n")
        return stack

    async def _create_people(self) -> Sequence[RecordChange]:
        """Create all people beside the owner, every tenth an admin."""
        changes = []
        for number in range(1, PERSON_COUNT):
            role = Role.ADMIN if number % 10 == 0 else Role.MEMBER
            profile = PersonRecord(f"Person {number:03}", f"person-{number:03}@example.com", role)
            id = self.ports.clock.new_id("per")
            changes.append(people.person_change(self.owner.tenant, id, profile))
        await self._commit_all([self._commit("add a person", (change,)) for change in changes])
        return changes

    async def _create_agents(
        self, numbers: Iterable[int], persons: Sequence[RecordChange]
    ) -> list[Record]:
        """Create agents with their own files; the first of each template is created as usual."""
        created = list[Record]()
        for batch in _batches(numbers, AGENTS_PER_TEMPLATE):
            first = await self._create_first_agent(batch[0])
            others = [self._agent_change(first, number, persons) for number in batch[1:]]
            commits = [self._commit("create an agent", (change,)) for change in others]
            await self._commit_all(commits)
            ids = [change.id for change in others]
            agents = await self.ports.records.get(first.tenant, first.type, ids)
            created += [first, *filter(None, agents)]
            await self._add_own_files(batch, created[-len(batch) :])
        return created

    async def _create_first_agent(self, number: int) -> Record:
        team = number // AGENTS_PER_TEMPLATE
        template = None if team == TEMPLATE_COUNT - 1 else template_slug(team)
        new = NewAgent(agent_slug(number), f"Agent {number:04}", template, is_shared=True)
        return await agents.create(self.ports, self.owner, new)

    def _agent_change(
        self, first: Record, number: int, persons: Sequence[RecordChange]
    ) -> RecordChange:
        """An agent over the layers of `first`; three of four are private and have a person."""
        person = None if number % 4 == 0 else persons[number % len(persons)].id
        agent = replace(
            agent_from_record(first),
            slug=agent_slug(number),
            name=f"Agent {number:04}",
            human_pair_id=person,
            is_shared=person is None,
            user_file=person is not None,
            tags=agent_tags(number),
        )
        return agent_change(first.tenant, self.ports.clock.new_id("agt"), agent)

    async def _add_own_files(self, numbers: Sequence[int], created: Sequence[Record]) -> None:
        """Add USER.md and MEMORY.md, and overrides of a live and of a pinned file."""
        pins = (await self.ports.trees.read([build_stack(created[0])[1]], (RULES,)))[0]
        pinned = pins.entry(RULES)
        assert pinned is not None
        texts = dict[tuple[int, Path], str]()
        for position, (number, agent) in enumerate(zip(numbers, created, strict=True)):
            texts |= {
                (position, path): text
                for path, text in _own_texts(number, agent_from_record(agent), position).items()
            }
        blobs = await self.ports.blobs.put([text.encode() for text in texts.values()])
        commits = [
            self._commit(
                f"write {path}", (), _own_write(created[position], path, blob, pinned.blob)
            )
            for (position, path), blob in zip(texts, blobs, strict=True)
        ]
        await self._commit_all(commits)

    async def _key_commits(self, fleet: Sequence[Record]) -> list[Commit]:
        specs = [
            KeySpec(
                f"runtime of {agent_from_record(agent).slug}", CredentialKind.AGENT, agent=agent.id
            )
            for agent in fleet[:KEY_COUNT]
        ]
        changes = [keys.new_key(self.ports, self.owner.tenant, spec).change for spec in specs]
        return [self._commit("create a key", (change,)) for change in changes]

    async def _start_runs(self, fleet: Sequence[Record]) -> None:
        """Start runs over 30 days, oldest first; one in ten failed, one in forty is running."""
        now = self.ports.clock.now()
        plans = []
        for number in range(RUN_COUNT):
            at = now - (RUN_COUNT - number) * 30 * _DAY_MS // RUN_COUNT
            plans.append((_new_run(fleet[number * 7 % len(fleet)], number, at), number))
        started = list[Run]()
        for batch in _batches(plans, _BATCH_SIZE):
            pairs = [(run, build_stack(fleet[number * 7 % len(fleet)])) for run, number in batch]
            started += await self.ports.runs.start(pairs)
        await self.ports.runs.record_prompts(
            [(run, prompt_sizes(run, _prompt_blocks(n))) for n, run in enumerate(started)]
        )
        ended = ((run, _ended(run, number)) for number, run in enumerate(started))
        await _gather(self.ports.runs.update(new, run) for run, new in ended if new != run)

    async def _fill_busy_agent(self, agent: Record) -> None:
        now, tenant = self.ports.clock.now(), agent.tenant
        sessions = [
            Session(tenant, f"talk-{n:03}", agent.id, Audience.MAIN, "web", now - n * 60_000)
            for n in range(BUSY_COUNT)
        ]
        await self.ports.sessions.start(sessions)
        entry = TranscriptEntry(0, now, SpeakerRole.USER, "How is the weather?")
        await self.ports.sessions.append(
            [SessionAppend(tenant, session.id, agent.id, (entry,)) for session in sessions]
        )
        for n in range(BUSY_COUNT):
            text = f"Order {n:03} was delivered."
            await memories.remember(self.ports, self.owner, agent.id, NewMemory(text))
            await items.put(self.ports, self.owner, agent.id, f"order/{n:03}", text)

    async def _add_deliveries(self) -> None:
        url = "https://hooks.example.com/carrel"
        webhook = (await webhooks.create(self.ports, self.owner, url, ["run.failed"])).webhook
        now = self.ports.clock.now()
        deliveries = [
            Delivery(
                *(f"msg_{n:024x}", webhook.tenant, webhook.id, "run.failed", b"{}"),
                *(DeliveryState.PENDING, now, now),
            )
            for n in range(BUSY_COUNT)
        ]
        cursor = await self.ports.deliveries.cursor()
        assert await self.ports.deliveries.enqueue(cursor, cursor or "0", deliveries)
        attempt = DeliveryAttempt(now, PostResult(200, "", 12))
        delivered = [
            replace(delivery, state=DeliveryState.DELIVERED, attempts=1) for delivery in deliveries
        ]
        await self.ports.deliveries.record_attempts([(item, attempt) for item in delivered])

    def _commit(self, reason: str, changes: Sequence[RecordChange] = (), *writes: Write) -> Commit:
        now = self.ports.clock.now()
        return Commit(writes, self.owner.name, reason, now, changes=tuple(changes))

    async def _commit_all(self, commits: Sequence[Commit]) -> None:
        for batch in _batches(commits, _BATCH_SIZE):
            outcomes = await self.ports.trees.commit(batch)
            assert all(isinstance(outcome, Applied) for outcome in outcomes)


def _batches(items: Iterable[Item], size: int) -> Iterator[Sequence[Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def _own_texts(number: int, agent: AgentRecord, position: int) -> Mapping[Path, str]:
    """Texts of an agent's own files, by path; `position` is its place in its template."""
    texts = dict[Path, str]()
    if agent.user_file:
        texts[USER] = f"# USER\n\nThe person of {agent.name}.\n"
    if number % 5 == 0:
        texts[MEMORY] = f"# MEMORY\n\n- Order {number} was delivered.\n"
    if number % 10 == 3:
        texts[SOUL] = f"# SOUL\n\n{agent.name} writes short answers.\n"
    if position < FIRST_OWN_OVERRIDES:
        texts[RULES] = f"# GUARDRAILS\n\nThe rules of {agent.name}.\n"
    return texts


def _own_write(agent: Record, path: Path, blob: Blob, pinned: Blob) -> Write:
    scope = Scope(agent.tenant, ScopeKind.AGENT, agent.id)
    return Write(scope, path, Entry(blob, pinned if path == RULES else None))


def _new_run(agent: Record, number: int, at: TimestampMs) -> Run:
    return Run(
        id=f"run_{(at << _ID_TIME_SHIFT) + number:024x}",
        tenant=agent.tenant,
        scope=Scope(agent.tenant, ScopeKind.AGENT, agent.id),
        workflow="agent",
        mode=Audience.MAIN,
        status=RunStatus.RUNNING,
        author="runtime",
        started_at=at,
    )


def run_status(number: int) -> RunStatus:
    """Status of a run by its number: one in ten failed, one in forty is running or cancelled."""
    if number % 10 == 4:
        return RunStatus.FAILED
    others = {7: RunStatus.RUNNING, 27: RunStatus.CANCELLED}
    return others.get(number % 40, RunStatus.COMPLETED)


def _ended(run: Run, number: int) -> Run:
    status = run_status(number)
    if status is RunStatus.RUNNING:
        return run
    return replace(run, status=status, ended_at=run.started_at + 1000 * (1 + number % 90))


def _prompt_blocks(number: int) -> Sequence[tuple[str, int]]:
    """Tokens of each block of a run's prompt; memories grow with time."""
    blocks = {"PLATFORM": 110, "GUARDRAILS": 240, "CAPABILITIES": 160, "IDENTITY": 40}
    blocks |= {"SOUL": 180 + number % 60, "USER": 90, "AGENTS": 320}
    return [*blocks.items(), ("RECENT NOTES", number % 140), ("MEMORY", 80 + number // 8)]


async def _gather(work: Iterable[Awaitable[Any]]) -> None:
    for batch in _batches(work, _BATCH_SIZE):
        await asyncio.gather(*batch)


async def build_fleet(data: File) -> None:
    """Build the fleet in an empty data directory; TOKEN is its owner's."""
    async with open_ports(load({"data": str(data)}, environ={})) as store:
        await tenants.bootstrap(store.ports, TOKEN)
        owner = await tenants.get_first_owner(store.ports, tenants.DEFAULT_TENANT_SLUG)
        actor = Actor(owner.tenant, owner.id, role=Role.OWNER, person=owner.id)
        ports = dataclasses.replace(store.ports, webhook_sender=NoWebhooks())
        await FleetBuilder(ports, actor).build()


def copy_fleet(built: File, target: File) -> File:
    """Copy a built store for a test that writes; no process may have either open."""
    return File(shutil.copytree(built, target))
