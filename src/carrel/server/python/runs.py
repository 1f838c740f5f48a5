"""Runs: each with the workspace that was frozen for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from carrel.actions.events import streams
from carrel.actions.prompt import prompts
from carrel.actions.prompt.prompts import AssembledPrompt
from carrel.actions.runs import diff as runs_diff
from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.core import runs as core
from carrel.core.identifiers import Path
from carrel.core.runs import Audience, RunStatus
from carrel.server.python.caller import CallerContext, Resource, one_of, when
from carrel.server.python.event_feed import EventStream
from carrel.server.python.files import File, FileRow, file_of, follow, row_of


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which the workspace now shows something else than the run sees."""

    path: str
    kind: str
    """added, removed or changed."""
    before: int | None
    """The version that the run sees, None where there is none."""
    after: int | None


class RunWorkspace:
    """The workspace as it was when the run began, to the byte, however it changes since."""

    def __init__(self, seat: CallerContext, run: core.Run) -> None:
        self._seat, self._run = seat, run

    async def get(self, path: str) -> File:
        return file_of(*await runs.file(self._seat.ports, self._run, Path(path)))

    async def list(self) -> tuple[FileRow, ...]:
        manifest = await runs.manifest(self._seat.ports, self._run)
        return tuple(map(row_of, manifest.files.values()))


class Run(Resource):
    """One run, as it was when it was last asked for or changed here."""

    def __init__(self, seat: CallerContext, run: core.Run) -> None:
        super().__init__(seat)
        self._run = run

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.status}>"

    @property
    def id(self) -> str:
        return self._run.id

    @property
    def workflow(self) -> str:
        return self._run.workflow

    @property
    def mode(self) -> str:
        return self._run.mode

    @property
    def status(self) -> str:
        return self._run.status

    @property
    def started_at(self) -> datetime:
        return when(self._run.started)

    @property
    def ended_at(self) -> datetime | None:
        return None if self._run.ended is None else when(self._run.ended)

    @property
    def parent(self) -> str | None:
        return self._run.parent

    @property
    def replay_of(self) -> str | None:
        return self._run.replay_of

    @property
    def kept(self) -> bool:
        return self._run.snapshot_kept

    @property
    def workspace(self) -> RunWorkspace:
        return RunWorkspace(self._seat, self._run)

    async def prompt(self) -> AssembledPrompt:
        """Its exact system prompt, whatever has changed since it began."""
        return await prompts.of_run(self._ports, self._run)

    async def diff(self) -> tuple[Difference, ...]:
        """What has changed in the workspace since, in order of path."""
        return tuple(
            Difference(
                path=found.path.text,
                kind=found.kind,
                before=found.before.head.version if found.before else None,
                after=found.after.head.version if found.after else None,
            )
            for found in await runs_diff.diff(self._ports, self._run)
        )

    async def diff_of(self, path: str) -> str:
        """What has changed at one path since, as a unified diff; empty where nothing has."""
        _, text = await runs_diff.difference(self._ports, self._run, Path(path))
        return text

    async def finish(self, status: str = RunStatus.COMPLETED) -> Run:
        """End it as completed, failed or cancelled. Raises Taken where it ended otherwise."""
        becomes = one_of(RunStatus, status, "status")
        self._run = await runs.change(self._ports, self._actor, self.id, status=becomes)
        return self

    async def release(self) -> Run:
        """Let go of its files, so that old versions may be pruned. There is no way back."""
        self._run = await runs.change(self._ports, self._actor, self.id, kept=False)
        return self

    async def refresh(self) -> Run:
        self._run = await runs.get(self._ports, self._actor, self.id)
        return self

    async def start_child(
        self, workflow: str = "", *, mode: str | None = None, share_snapshot: bool = False
    ) -> Run:
        """A run in the same workspace, frozen now, or with this run's very snapshot."""
        chosen = None if mode is None else one_of(Audience, mode, "mode")
        asked = RunRequest(workflow, parent=self.id, share_parent=share_snapshot, mode=chosen)
        return Run(self._seat, await runs.start(self._ports, self._actor, asked))

    async def replay(self) -> Run:
        """A run that reads what this one read, to the byte."""
        asked = RunRequest(replay_of=self.id)
        return Run(self._seat, await runs.start(self._ports, self._actor, asked))

    def events(self, since: str | None = None) -> EventStream:
        """Its own log, from the beginning; it ends when the run has."""

        async def listen() -> tuple[str, streams.Batches]:
            run = await runs.get(self._ports, self._actor, self.id)
            return await streams.listen_to_run(self._ports, self._actor, run, since)

        return follow(self._seat, listen)
