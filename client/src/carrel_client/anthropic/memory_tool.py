"""The memory tool (``memory_20250818``) over files of Carrel."""

from __future__ import annotations

from typing import Any, Final

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from carrel_client.anthropic.memory_commands import (
    Command,
    MemoryCommandError,
    MemoryCommands,
    run_command,
    run_command_async,
)
from carrel_client.drivers import AsyncDriver, SyncDriver
from carrel_client.files import Files

DIRECTORY: Final = "memory"
"""By default an agent may write below it with its own key."""


class CarrelMemoryTool(BetaAbstractMemoryTool):
    """Keeps ``/memories`` of a model in a directory of files, versioned and conditional."""

    def __init__(
        self, files: Files[SyncDriver], directory: str = DIRECTORY, **options: Any
    ) -> None:
        super().__init__(**options)
        self._files, self._commands = files, MemoryCommands(directory.strip("/"))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return self._run(self._commands.view(command.path, command.view_range))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return self._run(self._commands.create(command.path, command.file_text))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        replace = self._commands.str_replace
        return self._run(replace(command.path, command.old_str, command.new_str or ""))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        insert = self._commands.insert
        return self._run(insert(command.path, command.insert_line, command.insert_text))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return self._run(self._commands.delete(command.path))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return self._run(self._commands.rename(command.old_path, command.new_path))

    def clear_all_memory(self) -> str:
        return self._run(self._commands.clear())

    def _run(self, command: Command) -> str:
        try:
            return run_command(command, self._files)
        except MemoryCommandError as problem:
            raise ToolError(str(problem)) from problem


class AsyncCarrelMemoryTool(BetaAsyncAbstractMemoryTool):
    """Like CarrelMemoryTool, for clients that are awaited."""

    def __init__(
        self, files: Files[AsyncDriver], directory: str = DIRECTORY, **options: Any
    ) -> None:
        super().__init__(**options)
        self._files, self._commands = files, MemoryCommands(directory.strip("/"))

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await self._run(self._commands.view(command.path, command.view_range))

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await self._run(self._commands.create(command.path, command.file_text))

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        replace = self._commands.str_replace
        return await self._run(replace(command.path, command.old_str, command.new_str or ""))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        insert = self._commands.insert
        return await self._run(insert(command.path, command.insert_line, command.insert_text))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await self._run(self._commands.delete(command.path))

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await self._run(self._commands.rename(command.old_path, command.new_path))

    async def clear_all_memory(self) -> str:
        return await self._run(self._commands.clear())

    async def _run(self, command: Command) -> str:
        try:
            return await run_command_async(command, self._files)
        except MemoryCommandError as problem:
            raise ToolError(str(problem)) from problem
