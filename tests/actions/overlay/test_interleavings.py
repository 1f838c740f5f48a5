"""Two sandboxes on one workspace: commands that overlap, writes, edits and deletions between.

A command is two steps, finding its files and bringing back what it changed, so that anything can
happen in between. A naive model says what must come of it, by the rules of the guide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path as File
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs
from tests.support.stores import open_ports, ports_over
from tests.support.unsandboxed_provider import CommandOutcome

from carrel.actions.files import files
from carrel.actions.sandbox import workspace_files, write_back
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.adapters.postgres import open_store
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, Refusal
from carrel.core.identifiers import Path
from carrel.core.sandbox.write_back import short_id
from carrel.core.store.record import RecordChange, RecordType
from carrel.core.store.tree import Commit
from carrel.ports import Ports
from carrel.ports.sandbox import FileKind

Answer = TypeVar("Answer")
NAMES = [Path(text) for text in ("a", "a/b", "a/b/c", "d")]
EXAMPLES = {"sqlite": 200, "postgres": 10}
LONG_HISTORIES = 200
places = st.sampled_from(NAMES)
people = st.sampled_from(["ada", "ben"])
letters = st.sampled_from("xyz")


@dataclass
class Stage:
    ports: Ports
    runner: asyncio.Runner
    tenants: Iterator[int] = field(default_factory=count)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.get_loop().run_until_complete(work)


@dataclass
class Job:
    """A command under way: what it found, and its directory as it is by now."""

    bench: WorkspaceFiles
    call: str
    start: write_back.CommandInputs
    base: dict[Path, bytes]
    disk: dict[Path, bytes]

    def left(self) -> CommandOutcome:
        changed = {
            path: (FileKind.FILE, held)
            for path, held in self.disk.items()
            if self.base.get(path) != held
        }
        return CommandOutcome(changed, frozenset(self.base) - frozenset(self.disk))


def in_the_way(path: Path, live: dict[Path, bytes]) -> Path | None:
    """The name that would be a file and a directory at once."""
    if any(path in other.parents for other in live):
        return path
    return next((parent for parent in path.parents if parent in live), None)


class Interleavings(RuleBasedStateMachine):
    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.ports, self.do = stage.ports, stage.do
        self.tenant = f"tenant-{next(stage.tenants)}"
        self.live: dict[Path, bytes] = {}
        self.numbers: dict[Path, int] = {}
        self.ever: set[tuple[Path, bytes]] = set()
        self.jobs: list[Job] = []
        self.words = count()
        record = RecordChange(
            self.tenant, RecordType.WORKSPACE, "ws_shared", {"name": "x", "config": {}}, 0
        )
        self.do(self.ports.trees.commit([Commit((), "ada", "begin", 1, changes=(record,))]))

    def bench(self, who: str) -> WorkspaceFiles:
        return WorkspaceFiles(self.ports, Actor(self.tenant, who), "ws_shared")

    def becomes(self, path: Path, content: bytes | None) -> None:
        self.numbers[path] = self.numbers.get(path, 0) + 1
        if content is None:
            del self.live[path]
        else:
            self.live[path] = content
            self.ever.add((path, content))

    def text(self, letter: str) -> bytes:
        return f"{letter}{next(self.words)} {letter}".encode()

    @initialize(chosen=st.sampled_from([NAMES[:1], NAMES[1:2], NAMES[2:], NAMES[::3]]))
    def there_are_files(self, chosen: list[Path]) -> None:
        for path in chosen:
            self.becomes_written("ada", path, self.text("x"))

    @rule(who=people, path=places, letter=letters)
    def write(self, who: str, path: Path, letter: str) -> None:
        self.becomes_written(who, path, self.text(letter))

    def becomes_written(self, who: str, path: Path, content: bytes) -> None:
        work = workspace_files.write(self.bench(who), path, content)
        if path not in self.live and in_the_way(path, self.live):
            with pytest.raises(Conflict):
                self.do(work)
        else:
            self.do(work)
            self.becomes(path, content)

    @rule(who=people, path=places, letter=letters)
    def edit(self, who: str, path: Path, letter: str) -> None:
        new = next(self.words)
        old, after = f" {letter}".encode(), f" {new}".encode()
        work = workspace_files.edit(self.bench(who), path, old, after, every=False)
        if path not in self.live or self.live[path].count(old) != 1:
            with pytest.raises(Refusal):
                self.do(work)
        else:
            self.do(work)
            self.becomes(path, self.live[path].replace(old, after))

    @rule(who=people, path=places)
    def delete(self, who: str, path: Path) -> None:
        bench = self.bench(who)
        work = files.delete(self.ports, (bench.scope,), path, bench.actor)
        if path not in self.live:
            with pytest.raises(NotFound):
                self.do(work)
        else:
            self.do(work)
            self.becomes(path, None)

    @precondition(lambda self: len(self.jobs) < 3)
    @rule(who=people, wanted=st.dictionaries(places, st.none() | letters, min_size=1))
    def begin(self, who: str, wanted: dict[Path, str | None]) -> None:
        """When it changes its files is of no account: nobody else sees them until it ends."""
        bench = self.bench(who)
        start = self.do(write_back.load_inputs(bench))
        assert {path: head.version for path, head in start.tree.heads.items()} == {
            path: self.numbers[path] for path in self.live
        }
        call = f"call {next(self.words)}"
        job = Job(bench, call, start, dict(self.live), dict(self.live))
        for path, letter in wanted.items():
            self.put_on_disk(job.disk, path, letter)
        self.jobs.append(job)

    def put_on_disk(self, disk: dict[Path, bytes], path: Path, letter: str | None) -> None:
        """What is in the way of a new file has to go first."""
        gone = {path, *(other for other in disk if path in other.parents)}
        if letter is not None:
            gone |= set(path.parents)
        for other in gone:
            disk.pop(other, None)
        if letter is not None:
            disk[path] = self.text(letter)

    @precondition(lambda self: self.jobs)
    @rule(choice=st.integers(0, 2), twice=st.booleans())
    def finish(self, choice: int, twice: bool) -> None:
        job = self.jobs.pop(choice % len(self.jobs))
        told = self.do(self.brought_back(job))
        assert len(told) == self.merged(job)
        if twice:
            assert self.do(self.brought_back(job)) == told

    @precondition(lambda self: self.jobs)
    @rule(choice=st.integers(0, 2), path=places, letter=letters, other=places)
    def finish_among_rivals(self, choice: int, path: Path, letter: str, other: Path) -> None:
        """All at once: who comes first is not known, but nothing is lost whoever does."""
        job = self.jobs.pop(choice % len(self.jobs))
        rest, self.jobs = self.jobs, []
        content, bench = self.text(letter), self.bench("ben")
        work: list[Coroutine[Any, Any, Any]] = [self.brought_back(one) for one in (job, *rest)]
        work.append(workspace_files.write(bench, path, content))
        work.append(files.delete(self.ports, (bench.scope,), other, bench.actor))
        outcomes = self.do(gathered(work))
        assert all(isinstance(one, Refusal) for one in outcomes if isinstance(one, Exception))
        assert not any(isinstance(one, Exception) for one in outcomes[: len(rest) + 1])
        if not isinstance(outcomes[-2], Exception):
            self.ever.add((path, content))
        self.look_again([job, *rest])

    def look_again(self, jobs: list[Job]) -> None:
        """Take what is there for granted, once all that was finished is found in it."""
        held = {(path, content) for job in jobs for path, content in job.disk.items()}
        new = {(path, content) for path, content in held if self.is_new(jobs, path, content)}
        scope = self.bench("ada").scope
        said = self.do(self.histories())
        for path, content in new:
            asides = {name for name in said if ".conflict-" in name.text or name == path}
            assert any(content in said[name] for name in asides), (path, content)
        [tree] = self.do(self.ports.trees.read([scope]))
        self.live = self.do(self.contents())
        self.numbers |= {path: head.version for path, head in tree.heads.items()}
        for path, texts in said.items():
            history = self.do(self.ports.trees.history(scope, path))
            self.numbers[path] = history[0].head.version
            self.ever |= {(path, text) for text in texts}

    def is_new(self, jobs: list[Job], path: Path, content: bytes) -> bool:
        return any(job.disk.get(path) == content != job.base.get(path) for job in jobs)

    def merged(self, job: Job) -> int:
        """Do it in the model; how many warnings there have to be."""
        met = 0
        versions = {path: head.version for path, head in job.start.tree.heads.items()}
        left = job.left()
        for path in sorted(left.deleted & self.live.keys()):
            if self.numbers[path] == versions[path]:
                self.becomes(path, None)
            else:
                met += 1
        before = dict(self.live)
        for path, (_, content) in sorted(left.contents.items()):
            at = in_the_way(path, before)
            if at is not None:
                named = f"{at}.conflict-{short_id(job.call)}{path.text[len(at.text) :]}"
                self.becomes(Path(named), content)
                met += 1
                continue
            if self.live.get(path) == content:
                continue
            seen = versions.get(path, 0)
            met += seen != (self.numbers[path] if path in before else 0)
            self.becomes(path, content)
        return met

    async def brought_back(self, job: Job) -> Any:
        bench = structs.replace(job.bench, call=job.call, name=job.call)
        return await write_back.commit_changes(bench, job.start, job.left(), job.call, "bash")

    async def contents(self) -> dict[Path, bytes]:
        [tree] = await self.ports.trees.read([self.bench("ada").scope])
        blobs = {path: head.entry.blob for path, head in tree.heads.items() if head.entry}
        found = await self.ports.blobs.get(list(blobs.values()))
        return {path: found[blob.digest] for path, blob in blobs.items()}

    async def histories(self) -> dict[Path, set[bytes]]:
        """All that was ever said, by path."""
        said: dict[Path, set[bytes]] = {}
        for version in await self.ports.trees.log(self.bench("ada").scope):
            if entry := version.head.entry:
                found = await self.ports.blobs.get([entry.blob])
                said.setdefault(version.head.path, set()).add(found[entry.blob.digest])
        return said

    @invariant()
    def the_workspace_is_as_the_rules_say(self) -> None:
        assert self.do(self.contents()) == self.live
        assert not any(in_the_way(path, self.live) for path in self.live)

    def teardown(self) -> None:
        said = self.do(self.histories())
        for path, content in self.ever:
            assert content in said[path], f"{path} has lost {content!r}"


async def gathered(work: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


@contextmanager
def staged(kind: str, directory: File, url: str) -> Iterator[Stage]:
    if kind == "postgres":
        opened: Any = open_store(url)
    else:
        opened = open_ports(directory)
    with asyncio.Runner() as runner:
        found = runner.run(opened.__aenter__())
        try:
            yield Stage(ports_over(found) if kind == "postgres" else found, runner)
        finally:
            runner.run(opened.__aexit__(None, None, None))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_whoever_works_at_the_same_time_nothing_is_lost(
    kind: str, tmp_path: File, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    with staged(kind, tmp_path, url) as stage:
        machine: Any = partial(Interleavings, stage)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES[kind],
                stateful_step_count=24,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


def test_nor_is_it_in_long_histories_with_much_to_do(tmp_path: File) -> None:
    """The same rules, drawn evenly: long runs of them are what a search for small ones avoids."""
    with staged("sqlite", tmp_path, "") as stage:
        for seed in range(LONG_HISTORIES):
            play(Interleavings(stage), Random(seed))


def play(machine: Interleavings, chance: Random) -> None:
    for _ in range(40):
        who, path, letter = chance.choice("ab"), chance.choice(NAMES), chance.choice("xyz")
        entry = chance.choice("wwedbbbfffr")
        if entry == "w":
            machine.write(who, path, letter)
        elif entry == "e":
            machine.edit(who, path, letter)
        elif entry == "d":
            machine.delete(who, path)
        elif entry == "b" and len(machine.jobs) < 3:
            wanted = {chance.choice(NAMES): chance.choice(("x", "y", None)) for _ in range(3)}
            machine.begin(who, wanted)
        elif entry == "f" and machine.jobs:
            machine.finish(chance.randrange(3), chance.random() < 0.2)
        elif entry == "r" and machine.jobs:
            machine.finish_among_rivals(chance.randrange(3), path, letter, chance.choice(NAMES))
        machine.the_workspace_is_as_the_rules_say()
    machine.teardown()
