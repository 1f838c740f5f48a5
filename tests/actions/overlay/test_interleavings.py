"""Two sandboxes on one workspace: overlapping commands, writes and deletions.

A command has two steps, loading its files and writing back its changes, so anything can happen in
between. A naive model computes the expected result by the rules of the guide.
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
from carrel.actions.sandbox.command_inputs import CommandInputs, load_inputs
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.adapters.postgres import open_store
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, Refusal
from carrel.core.identifiers import Path
from carrel.core.sandbox.write_back import short_id
from carrel.core.store.commit import Commit
from carrel.core.store.record import RecordChange, RecordType
from carrel.ports import Ports
from carrel.ports.sandbox import FileKind

Answer = TypeVar("Answer")
NAMES = [Path(text) for text in ("a", "a/b", "a/b/c", "d")]
EXAMPLES = {"sqlite": 60, "postgres": 8}
LONG_HISTORIES = 60
paths = st.sampled_from(NAMES)
authors = st.sampled_from(["ada", "ben"])
letters = st.sampled_from("xyz")


@dataclass
class StoreUnderTest:
    ports: Ports
    runner: asyncio.Runner
    tenants: Iterator[int] = field(default_factory=count)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.get_loop().run_until_complete(work)


@dataclass
class Job:
    """A running command: its inputs, and the current files of its directory."""

    workspace: WorkspaceFiles
    call: str
    start: CommandInputs
    base: dict[Path, bytes]
    disk: dict[Path, bytes]

    def changes(self) -> CommandOutcome:
        changed = {
            path: (FileKind.FILE, content)
            for path, content in self.disk.items()
            if self.base.get(path) != content
        }
        return CommandOutcome(changed, frozenset(self.base) - frozenset(self.disk))


def blocking_path(path: Path, live: dict[Path, bytes]) -> Path | None:
    """The path that would be a file and a directory at once."""
    if any(path in other.parents for other in live):
        return path
    return next((parent for parent in path.parents if parent in live), None)


class InterleavingMachine(RuleBasedStateMachine):
    def __init__(self, store: StoreUnderTest) -> None:
        super().__init__()
        self.ports, self.do = store.ports, store.do
        self.tenant = f"tenant-{next(store.tenants)}"
        self.live: dict[Path, bytes] = {}
        self.numbers: dict[Path, int] = {}
        self.all_versions: set[tuple[Path, bytes]] = set()
        self.jobs: list[Job] = []
        self.words = count()
        record = RecordChange(
            self.tenant, RecordType.WORKSPACE, "ws_shared", {"name": "x", "config": {}}, 0
        )
        self.do(self.ports.trees.commit([Commit((), "ada", "begin", 1, changes=(record,))]))

    def workspace(self, author: str) -> WorkspaceFiles:
        return WorkspaceFiles(self.ports, Actor(self.tenant, author), "ws_shared")

    def record_version(self, path: Path, content: bytes | None) -> None:
        self.numbers[path] = self.numbers.get(path, 0) + 1
        if content is None:
            del self.live[path]
        else:
            self.live[path] = content
            self.all_versions.add((path, content))

    def text(self, letter: str) -> bytes:
        return f"{letter}{next(self.words)} {letter}".encode()

    @initialize(initial=st.sampled_from([NAMES[:1], NAMES[1:2], NAMES[2:], NAMES[::3]]))
    def create_files(self, initial: list[Path]) -> None:
        for path in initial:
            self.write_file("ada", path, self.text("x"))

    @rule(author=authors, path=paths, letter=letters)
    def write(self, author: str, path: Path, letter: str) -> None:
        self.write_file(author, path, self.text(letter))

    def write_file(self, author: str, path: Path, content: bytes) -> None:
        work = workspace_files.write(self.workspace(author), path, content)
        if path not in self.live and blocking_path(path, self.live):
            with pytest.raises(Conflict):
                self.do(work)
        else:
            self.do(work)
            self.record_version(path, content)

    @rule(author=authors, path=paths, letter=letters)
    def edit(self, author: str, path: Path, letter: str) -> None:
        new = next(self.words)
        old, after = f" {letter}".encode(), f" {new}".encode()
        work = workspace_files.edit(self.workspace(author), path, old, after, every=False)
        if path not in self.live or self.live[path].count(old) != 1:
            with pytest.raises(Refusal):
                self.do(work)
        else:
            self.do(work)
            self.record_version(path, self.live[path].replace(old, after))

    @rule(author=authors, path=paths)
    def delete(self, author: str, path: Path) -> None:
        workspace = self.workspace(author)
        work = files.delete(self.ports, (workspace.scope,), path, workspace.actor)
        if path not in self.live:
            with pytest.raises(NotFound):
                self.do(work)
        else:
            self.do(work)
            self.record_version(path, None)

    @precondition(lambda self: len(self.jobs) < 3)
    @rule(author=authors, edits=st.dictionaries(paths, st.none() | letters, min_size=1))
    def start_command(self, author: str, edits: dict[Path, str | None]) -> None:
        """The time of its local edits does not matter: they are visible only when it ends."""
        workspace = self.workspace(author)
        start = self.do(load_inputs(workspace))
        assert {path: head.version for path, head in start.tree.heads.items()} == {
            path: self.numbers[path] for path in self.live
        }
        call = f"call {next(self.words)}"
        job = Job(workspace, call, start, dict(self.live), dict(self.live))
        for path, letter in edits.items():
            self.put_on_disk(job.disk, path, letter)
        self.jobs.append(job)

    def put_on_disk(self, disk: dict[Path, bytes], path: Path, letter: str | None) -> None:
        """Remove the paths that conflict with a new file first."""
        removed = {path, *(other for other in disk if path in other.parents)}
        if letter is not None:
            removed |= set(path.parents)
        for other in removed:
            disk.pop(other, None)
        if letter is not None:
            disk[path] = self.text(letter)

    @precondition(lambda self: self.jobs)
    @rule(choice=st.integers(0, 2), twice=st.booleans())
    def finish(self, choice: int, twice: bool) -> None:
        job = self.jobs.pop(choice % len(self.jobs))
        warnings = self.do(self.write_back_job(job))
        assert len(warnings) == self.merge_into_model(job)
        if twice:
            assert self.do(self.write_back_job(job)) == warnings

    @precondition(lambda self: self.jobs)
    @rule(choice=st.integers(0, 2), path=paths, letter=letters, other=paths)
    def finish_concurrently(self, choice: int, path: Path, letter: str, other: Path) -> None:
        """Concurrently: the order is undefined, but nothing is lost in any order."""
        job = self.jobs.pop(choice % len(self.jobs))
        rest, self.jobs = self.jobs, []
        content, workspace = self.text(letter), self.workspace("ben")
        work: list[Coroutine[Any, Any, Any]] = [self.write_back_job(item) for item in (job, *rest)]
        work.append(workspace_files.write(workspace, path, content))
        work.append(files.delete(self.ports, (workspace.scope,), other, workspace.actor))
        outcomes = self.do(gather_all(work))
        assert all(isinstance(item, Refusal) for item in outcomes if isinstance(item, Exception))
        assert not any(isinstance(item, Exception) for item in outcomes[: len(rest) + 1])
        if not isinstance(outcomes[-2], Exception):
            self.all_versions.add((path, content))
        self.reload_model([job, *rest])

    def reload_model(self, jobs: list[Job]) -> None:
        """Reset the model to the store, after checking that all finished changes are in it."""
        on_disk = {(path, content) for job in jobs for path, content in job.disk.items()}
        new = {(path, content) for path, content in on_disk if self.is_new(jobs, path, content)}
        scope = self.workspace("ada").scope
        histories = self.do(self.histories())
        for path, content in new:
            candidates = {name for name in histories if ".conflict-" in name.text or name == path}
            assert any(content in histories[name] for name in candidates), (path, content)
        [tree] = self.do(self.ports.trees.read([scope]))
        self.live = self.do(self.contents())
        self.numbers |= {path: head.version for path, head in tree.heads.items()}
        for path, texts in histories.items():
            history = self.do(self.ports.trees.history(scope, path))
            self.numbers[path] = history[0].head.version
            self.all_versions |= {(path, text) for text in texts}

    def is_new(self, jobs: list[Job], path: Path, content: bytes) -> bool:
        return any(job.disk.get(path) == content != job.base.get(path) for job in jobs)

    def merge_into_model(self, job: Job) -> int:
        """Apply the command to the model; returns the expected number of warnings."""
        conflicts = 0
        versions = {path: head.version for path, head in job.start.tree.heads.items()}
        changes = job.changes()
        for path in sorted(changes.deleted & self.live.keys()):
            if self.numbers[path] == versions[path]:
                self.record_version(path, None)
            else:
                conflicts += 1
        before = dict(self.live)
        for path, (_, content) in sorted(changes.contents.items()):
            blocking = blocking_path(path, before)
            if blocking is not None:
                named = f"{blocking}.conflict-{short_id(job.call)}{path.text[len(blocking.text) :]}"
                self.record_version(Path(named), content)
                conflicts += 1
                continue
            if self.live.get(path) == content:
                continue
            base_version = versions.get(path, 0)
            conflicts += base_version != (self.numbers[path] if path in before else 0)
            self.record_version(path, content)
        return conflicts

    async def write_back_job(self, job: Job) -> Any:
        workspace = structs.replace(job.workspace, call=job.call, name=job.call)
        result = await write_back.commit_changes(
            workspace, job.start, job.changes(), job.call, "bash"
        )
        return result.notes

    async def contents(self) -> dict[Path, bytes]:
        [tree] = await self.ports.trees.read([self.workspace("ada").scope])
        blobs = {path: head.entry.blob for path, head in tree.heads.items() if head.entry}
        contents = await self.ports.blobs.get(list(blobs.values()))
        return {path: contents[blob.digest] for path, blob in blobs.items()}

    async def histories(self) -> dict[Path, set[bytes]]:
        """Every content ever written, by path."""
        histories: dict[Path, set[bytes]] = {}
        for version in await self.ports.trees.log(self.workspace("ada").scope):
            if entry := version.head.entry:
                contents = await self.ports.blobs.get([entry.blob])
                histories.setdefault(version.head.path, set()).add(contents[entry.blob.digest])
        return histories

    @invariant()
    def the_workspace_equals_the_model(self) -> None:
        assert self.do(self.contents()) == self.live
        assert not any(blocking_path(path, self.live) for path in self.live)

    def teardown(self) -> None:
        histories = self.do(self.histories())
        for path, content in self.all_versions:
            assert content in histories[path], f"{path} has lost {content!r}"


async def gather_all(work: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


@contextmanager
def open_store_under_test(kind: str, directory: File, url: str) -> Iterator[StoreUnderTest]:
    if kind == "postgres":
        opened: Any = open_store(url)
    else:
        opened = open_ports(directory)
    with asyncio.Runner() as runner:
        ports = runner.run(opened.__aenter__())
        try:
            yield StoreUnderTest(ports_over(ports) if kind == "postgres" else ports, runner)
        finally:
            runner.run(opened.__aexit__(None, None, None))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_no_change_is_lost_in_any_interleaving(
    kind: str, tmp_path: File, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    with open_store_under_test(kind, tmp_path, url) as store:
        machine: Any = partial(InterleavingMachine, store)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=EXAMPLES[kind],
                stateful_step_count=24,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


def test_no_change_is_lost_in_long_histories(tmp_path: File) -> None:
    """The same rules drawn evenly, since Hypothesis prefers short histories."""
    with open_store_under_test("sqlite", tmp_path, "") as store:
        for seed in range(LONG_HISTORIES):
            run_random_history(InterleavingMachine(store), Random(seed))


def run_random_history(machine: InterleavingMachine, rng: Random) -> None:
    for _ in range(40):
        author, path, letter = rng.choice("ab"), rng.choice(NAMES), rng.choice("xyz")
        entry = rng.choice("wwedbbbfffr")
        if entry == "w":
            machine.write(author, path, letter)
        elif entry == "e":
            machine.edit(author, path, letter)
        elif entry == "d":
            machine.delete(author, path)
        elif entry == "b" and len(machine.jobs) < 3:
            edits = {rng.choice(NAMES): rng.choice(("x", "y", None)) for _ in range(3)}
            machine.start_command(author, edits)
        elif entry == "f" and machine.jobs:
            machine.finish(rng.randrange(3), rng.random() < 0.2)
        elif entry == "r" and machine.jobs:
            machine.finish_concurrently(rng.randrange(3), path, letter, rng.choice(NAMES))
        machine.the_workspace_equals_the_model()
    machine.teardown()
