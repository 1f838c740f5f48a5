"""deepagents backends over Carrel: files alone, and files with a sandbox."""

from __future__ import annotations

from typing import Any, Final

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    WriteResult,
)

from carrel_client.client import ApiClient
from carrel_client.deepagents.command_execution import execute_command
from carrel_client.deepagents.file_operations import FileOperations
from carrel_client.drivers import await_steps, run_steps
from carrel_client.files import Files
from carrel_client.runtimes.agent_run import AgentRun

SANDBOX_ROOT: Final = "/workspace"


class CarrelBackend(BackendProtocol):
    """A deepagents backend over the files of a workspace or an agent, without commands.

    ``files`` is ``client.workspace("ws_…")`` or ``client.agent("ada")``, of a Client or an
    AsyncClient; the methods that block need a Client. The file ``a/b.md`` is ``/a/b.md`` here.
    Every write is a version with its author; edits apply to the version that they read.
    """

    def __init__(self, files: Files[Any], *, root: str = "/") -> None:
        self._driver = files._driver
        self._files = files
        self._operations = FileOperations(files, root)

    def ls(self, path: str) -> LsResult:
        return run_steps(self._driver, self._operations.ls(path))

    async def als(self, path: str) -> LsResult:
        return await await_steps(self._driver, self._operations.ls(path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return run_steps(self._driver, self._operations.read(file_path, offset, limit))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return await await_steps(self._driver, self._operations.read(file_path, offset, limit))

    def write(self, file_path: str, content: str) -> WriteResult:
        return run_steps(self._driver, self._operations.write(file_path, content))

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return await await_steps(self._driver, self._operations.write(file_path, content))

    def edit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        steps = self._operations.edit(file_path, old_string, new_string, replace_all=replace_all)
        return run_steps(self._driver, steps)

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        steps = self._operations.edit(file_path, old_string, new_string, replace_all=replace_all)
        return await await_steps(self._driver, steps)

    def delete(self, file_path: str) -> DeleteResult:
        return run_steps(self._driver, self._operations.delete(file_path))

    async def adelete(self, file_path: str) -> DeleteResult:
        return await await_steps(self._driver, self._operations.delete(file_path))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return run_steps(self._driver, self._operations.glob(pattern, path))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return await await_steps(self._driver, self._operations.glob(pattern, path))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        return run_steps(self._driver, self._operations.grep(pattern, path, glob, max_count))

    async def agrep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        steps = self._operations.grep(pattern, path, glob, max_count)
        return await await_steps(self._driver, steps)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return run_steps(self._driver, self._operations.upload(files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return await await_steps(self._driver, self._operations.upload(files))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return run_steps(self._driver, self._operations.download(paths))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await await_steps(self._driver, self._operations.download(paths))


class CarrelSandbox(CarrelBackend, SandboxBackendProtocol):
    """A deepagents backend with commands: a workspace of an agent, and the agent's sandbox.

    ``workspace`` is the id of a workspace that is attached to the agent, where commands run in
    ``root``; a file ``a`` is ``/workspace/a`` here and in commands. A command that needs an
    approval waits for it. With a ``run`` its calls are in the log of the run.
    """

    def __init__(
        self,
        client: ApiClient[Any],
        agent: str,
        workspace: str,
        *,
        attached_as: str | None = None,
        run: AgentRun[Any] | None = None,
        root: str = SANDBOX_ROOT,
    ) -> None:
        super().__init__(client.workspace(workspace), root=root)
        self._agent, self._workspace = agent, workspace
        self._attached_as, self._run = attached_as, run

    @property
    def id(self) -> str:
        return f"{self._agent}/{self._workspace}"

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return run_steps(self._driver, self._execute(command, timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return await await_steps(self._driver, self._execute(command, timeout))

    def _execute(self, command: str, timeout: int | None) -> Any:
        arguments: dict[str, Any] = {"command": command}
        if self._attached_as is not None:
            arguments["workspace"] = self._attached_as
        if timeout:
            arguments["timeout"] = timeout
        return execute_command(self._files, self._agent, arguments, self._run)
