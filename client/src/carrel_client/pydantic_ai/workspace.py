"""Workspace backends of pydantic-ai: files alone, and files with a sandbox."""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    SupportsCommands,
    SupportsFilesystem,
    SupportsRealpath,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from carrel_client.agents import Agent
from carrel_client.client import ApiClient
from carrel_client.drivers import Steps, await_steps, run_to_end, steps_of
from carrel_client.errors import NotFound
from carrel_client.files import Files
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.runtimes.commands import (
    SAVED_BYTES,
    CommandRefused,
    CompletedCommand,
    NotAttached,
    run_command,
    workspace_arguments,
)
from carrel_client.runtimes.posix_files import PosixEntry, PosixFiles

PROVIDER: Final = "carrel"
ROOT: Final = "/workspace"
"""Directory in which commands start."""
Result = TypeVar("Result")


class CarrelWorkspace(WorkspaceBackend, SupportsFilesystem, SupportsRealpath):
    """The files of a Carrel workspace, without commands.

    ``workspace`` is an id (``ws_…``) or the ref of an earlier backend; without it, the first
    operation creates a workspace. The file ``a/b.md`` is ``/workspace/a/b.md`` here. Every write is
    a version with its author. The client may await or block.
    """

    def __init__(
        self,
        client: ApiClient[Any],
        workspace: str | WorkspaceRef | None = None,
        *,
        name: str = "pydantic-ai",
        root: str = ROOT,
    ) -> None:
        if isinstance(workspace, WorkspaceRef) and workspace.provider != PROVIDER:
            raise ValueError(f"the ref is of {workspace.provider!r}, not of {PROVIDER!r}")
        self._client, self._driver = client, client._driver
        self._id = workspace.id if isinstance(workspace, WorkspaceRef) else workspace
        self._name, self._root = name, root
        self._lock = asyncio.Lock()
        self._files: PosixFiles | None = None
        self._was_found = False

    @property
    def ref(self) -> WorkspaceRef | None:
        return None if self._id is None else WorkspaceRef(provider=PROVIDER, id=self._id)

    async def working_dir(self) -> str:
        """The root directory. Raises WorkspaceUnavailableError if there is no such workspace."""
        await self._open()
        if not self._was_found:
            await self._await(steps_of(self._stored_files().stat, ".carrel"))
            self._was_found = True
        return self._root

    async def read_bytes(self, path: str) -> bytes:
        return await self._await((await self._open()).read_bytes(path))

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._await((await self._open()).write_bytes(path, data))

    async def stat(self, path: str) -> FileEntry:
        return _file_entry(await self._await((await self._open()).stat(path)))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        entries = await self._await((await self._open()).list_directory(path))
        return tuple(map(_file_entry, entries))

    async def make_dir(self, path: str) -> None:
        await self._await((await self._open()).make_directory(path))

    async def remove(self, path: str) -> None:
        await self._await((await self._open()).remove(path))

    async def exists(self, path: str) -> bool:
        return await self._await((await self._open()).exists(path))

    async def realpath(self, path: str) -> str:
        return await self._await((await self._open()).realpath(path))

    async def _open(self) -> PosixFiles:
        """The files, of a workspace that is created if there is none yet."""
        if self._files is None:
            async with self._lock:
                if self._files is None:
                    # A caller that is cancelled must not lose a workspace that was created.
                    await run_to_end(asyncio.ensure_future(self._create()))
                    self._files = PosixFiles(self._stored_files(), self._root)
        return self._files

    async def _create(self) -> None:
        if self._id is None:
            create = steps_of(self._client.workspaces.create, self._name)
            self._id = (await self._await(create)).id

    def _stored_files(self) -> Files[Any]:
        assert self._id is not None
        return self._client.workspace(self._id)

    async def _await(self, steps: Steps[Result]) -> Result:
        with unavailable_if_missing():
            return await await_steps(self._driver, steps)


class CarrelSandbox(CarrelWorkspace, SupportsCommands):
    """A Carrel workspace with commands, which run in the sandbox of an agent.

    The workspace is one of the agent's; a new one is attached to the agent, which is for owners,
    admins and services. A command's changes are one commit at its end. A command that needs an
    approval waits for it. With a ``run`` its calls are in the log of the run.
    """

    def __init__(
        self,
        client: ApiClient[Any],
        agent: str,
        workspace: str | WorkspaceRef | None = None,
        *,
        run: AgentRun[Any] | None = None,
        name: str = "pydantic-ai",
        root: str = ROOT,
    ) -> None:
        super().__init__(client, workspace, name=name, root=root)
        self._agent, self._run = agent, run
        self._must_attach = workspace is None
        self._arguments: Mapping[str, str] | None = None

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command in the root directory; a longer time limit than the sandbox's is cut.

        Raises WorkspaceTimeoutError, WorkspaceOutputLimitError above 1 MiB, and WorkspaceError for
        a command that was denied.
        """
        arguments: dict[str, Any] = {"command": command_text(command, shell=shell)}
        if timeout is not None:
            arguments["timeout"] = whole_seconds(timeout)
        if env:
            arguments["env"] = dict(env)
        await self._open()
        completed = await self._execute(arguments | dict(await self._workspace_arguments()))
        if completed.timed_out:
            text = "the command exceeded its time limit and was killed"
            raise WorkspaceTimeoutError(text, stdout=completed.stdout, stderr=completed.stderr)
        if not completed.is_complete or completed.exit_code is None:
            raise WorkspaceOutputLimitError(
                "the output is longer than what is kept; redirect it to a file",
                limit=SAVED_BYTES,
                stdout=completed.stdout,
                stderr=completed.stderr,
            )
        return CommandResult(
            exit_code=completed.exit_code, stdout=completed.stdout, stderr=completed.stderr
        )

    async def _execute(self, arguments: Mapping[str, Any]) -> CompletedCommand:
        files = self._stored_files()
        try:
            return await self._await(run_command(files, self._agent, arguments, self._run))
        except CommandRefused as refused:
            await self._await(steps_of(files.stat, ".carrel"))
            # The sandbox's own limit is lower, so it holds.
            if "timeout" in arguments and "timeout must be" in str(refused):
                rest = {name: arguments[name] for name in arguments if name != "timeout"}
                return await self._execute(rest)
            raise WorkspaceError(str(refused)) from None

    async def _workspace_arguments(self) -> Mapping[str, str]:
        if self._arguments is None:
            assert self._id is not None
            steps = workspace_arguments(self._stored_files(), self._agent, self._id)
            try:
                self._arguments = await self._await(steps)
            except NotAttached as problem:
                raise WorkspaceUnavailableError(str(problem)) from None
        return self._arguments

    async def _create(self) -> None:
        await super()._create()
        if self._must_attach:
            agents, id = self._client.agents, self._id
            record: Agent = await self._await(steps_of(agents.get, self._agent))
            attached = list(record.config.get("workspaces", ()))
            if id not in {item["workspaceId"] for item in attached}:
                attached.append({"name": str(id).replace("_", "-"), "workspaceId": id})
                config = {**record.config, "workspaces": attached}
                await self._await(steps_of(agents.change, self._agent, config=config))
            self._must_attach = False


@contextmanager
def unavailable_if_missing() -> Iterator[None]:
    """Turn the refusal of a missing workspace into WorkspaceUnavailableError."""
    try:
        yield
    except NotFound as refusal:
        raise WorkspaceUnavailableError(refusal.message) from refusal


def command_text(command: WorkspaceCommand, *, shell: bool) -> str:
    """Raises TypeError if the form of the command contradicts ``shell``."""
    if isinstance(command, str) != shell:
        raise TypeError("shell=True takes a string, shell=False a sequence of arguments")
    return command if isinstance(command, str) else shlex.join(command)


def whole_seconds(timeout: float) -> int:
    """Raises ValueError for a time limit that is no positive number."""
    if not math.isfinite(timeout) or timeout <= 0:
        raise ValueError("timeout must be a positive finite number or None")
    return math.ceil(timeout)


def _file_entry(entry: PosixEntry) -> FileEntry:
    return FileEntry(name=entry.name, path=entry.path, is_dir=entry.is_directory, size=entry.size)
