"""A run as an agent runtime needs it: prompt, tools and files in one call, transcript and end.

``agent_run`` starts the run and ends it with the status of its block. Adapters of runtimes are
built on it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload
from uuid import uuid4

from carrel_client.drivers import (
    AsyncDriver,
    Driver,
    Resource,
    Steps,
    SyncDriver,
    operation,
    steps_of,
)
from carrel_client.errors import CarrelError, InvalidResponse
from carrel_client.file_models import FileRow
from carrel_client.runs import Run
from carrel_client.runtimes.tool_calls import call_tool_and_wait
from carrel_client.sessions import NewEntry, Sessions
from carrel_client.tools import ToolReply

if TYPE_CHECKING:
    from types import TracebackType

    from carrel_client.client import ApiClient, AsyncClient, Client

PARTS: Final = ("files", "prompt", "tools")
_MAX_ENTRIES: Final = 1000
"""Entries that one request may append."""
_MAX_REASON_CHARS: Final = 4000
_INTERRUPTS: Final = (KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit)

AnyDriver = TypeVar("AnyDriver", bound=SyncDriver | AsyncDriver)


@dataclass(frozen=True, slots=True)
class RunTool:
    """A tool of the run's agent."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments."""
    definition: Mapping[str, Any]
    """The definition in the dialect that was requested."""


class AgentRun(Resource[Driver]):
    """A started run of an agent, and the entries that it adds to its session."""

    def __init__(self, client: ApiClient[Driver], agent: str, run: Run[Driver]) -> None:
        super().__init__(client._driver)
        parts = run.parts
        if parts is None or parts.prompt is None or parts.tools is None or parts.files is None:
            raise InvalidResponse("the response has no parts of a run")
        self.run = run
        self.agent = agent
        self.prompt = parts.prompt.text
        """The frozen system prompt."""
        self.tools = tuple(map(tool_from_definition, parts.tools))
        self.files: Sequence[FileRow] = parts.files
        """The frozen files; a ``File`` where the content is text."""
        self._entries: list[NewEntry] = []
        self._is_finished = False

    def __repr__(self) -> str:
        return f"<AgentRun {self.id} of {self.agent}>"

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def session_id(self) -> str:
        return str(self.run.session_id)

    @property
    def prompt_sha256(self) -> str:
        """Digest of the prompt; a replay of the run has the same."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()

    @property
    def is_finished(self) -> bool:
        return self._is_finished

    def record(
        self,
        role: str,
        content: str | None = None,
        *,
        item: Any = None,
        message_id: str | None = None,
    ) -> None:
        """Keep an entry for the session; it is sent by ``flush`` or with the end of the run.

        ``role`` is user, assistant, tool or system; ``item`` any JSON value, such as tool calls.
        """
        entry = NewEntry(role=role, content=content, item=item, message_id=message_id)
        self._entries.append(entry)

    @operation
    def flush(self) -> Steps[None]:
        """Append the recorded entries to the session now."""
        yield from self._flush(keep=0)

    @operation
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        wait: bool = True,
    ) -> Steps[ToolReply]:
        """Call a tool of the agent in this run.

        A call that needs an approval waits until a person has answered; without ``wait`` its reply
        has the ``approval`` until then, and the same ``call_id`` returns the result afterwards.
        """
        return (
            yield from call_tool_and_wait(
                self._driver,
                self.agent,
                name,
                arguments,
                wait=wait,
                session_id=self.session_id,
                run_id=self.id,
                call_id=call_id,
            )
        )

    @operation
    def finish(self, status: str = "completed", *, error: str | None = None) -> Steps[None]:
        """End the run: completed, failed or cancelled; an error becomes a system entry and
        the reason of the status.

        Does nothing if it has ended.
        """
        if self._is_finished:
            return
        if error is not None:
            self.record("system", f"Error: {error}", item={"type": "error", "message": error})
        yield from self._flush(keep=_MAX_ENTRIES)
        entries, self._entries = self._entries, []
        run: Run[Any] = self.run
        try:
            reason = None if error is None else error[:_MAX_REASON_CHARS]
            yield from steps_of(run.finish, status, entries=entries, reason=reason)
        except BaseException:
            self._entries = entries
            raise
        self._is_finished = True

    def _flush(self, keep: int) -> Steps[None]:
        while len(self._entries) > keep:
            batch = self._entries[:_MAX_ENTRIES]
            sessions: Sessions[Any] = Sessions(self._driver, self.agent)
            session = yield from steps_of(sessions.get, self.session_id)
            yield from steps_of(session.append_all, batch)
            del self._entries[: len(batch)]


class _RunBlock(Generic[AnyDriver]):
    """Start and end of a run, in steps."""

    def __init__(self, client: ApiClient[AnyDriver], agent: str, options: dict[str, Any]) -> None:
        self._client: ApiClient[Any] = client
        self._agent, self._options = agent, options
        self._run: AgentRun[Any] | None = None

    def _start(self) -> Steps[AgentRun[Any]]:
        run = yield from steps_of(self._client.start_run, **self._options)
        self._run = AgentRun(self._client, self._agent, run)
        return self._run

    def _end(self, error: BaseException | None) -> Steps[None]:
        run = self._run
        if run is None:
            return
        if error is None:
            yield from steps_of(run.finish)
            return
        status = "cancelled" if isinstance(error, _INTERRUPTS) else "failed"
        try:
            yield from steps_of(run.finish, status, error=_describe(error))
        except CarrelError as failure:
            # The caller needs its own error; the server marks the run as abandoned.
            error.__context__ = error.__context__ or failure


class RunBlock(_RunBlock[SyncDriver]):
    """A run for a ``with`` block."""

    def __enter__(self) -> AgentRun[SyncDriver]:
        run: AgentRun[SyncDriver] = self._client._driver.drive(self._start())
        return run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client._driver.drive(self._end(error))


class AsyncRunBlock(_RunBlock[AsyncDriver]):
    """A run for an ``async with`` block."""

    async def __aenter__(self) -> AgentRun[AsyncDriver]:
        run: AgentRun[AsyncDriver] = await self._client._driver.drive(self._start())
        return run

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client._driver.drive(self._end(error))


@overload
def agent_run(
    client: Client,
    agent: str,
    session_id: str | None = None,
    *,
    dialect: str = ...,
    scope: str | None = ...,
    workflow_id: str = ...,
    replay_of: str | None = ...,
) -> RunBlock: ...
@overload
def agent_run(
    client: AsyncClient,
    agent: str,
    session_id: str | None = None,
    *,
    dialect: str = ...,
    scope: str | None = ...,
    workflow_id: str = ...,
    replay_of: str | None = ...,
) -> AsyncRunBlock: ...
def agent_run(  # noqa: PLR0913 - the fields of a run, by name
    client: Any,
    agent: str,
    session_id: str | None = None,
    *,
    dialect: str = "mcp",
    scope: str | None = None,
    workflow_id: str = "",
    replay_of: str | None = None,
) -> Any:
    """Start a run of an agent for a block, with its prompt, tools and frozen files.

    The run ends as completed at the end of the block, as failed after an error, which becomes an
    entry of the session, and as cancelled after an interrupt. Without a session it has one of its
    own. ``replay_of`` names a run whose files and prompt are used again. ``dialect`` is that of the
    tools' definitions: ``mcp``, ``openai`` or ``anthropic``.
    """
    options = {
        "workflow_id": workflow_id,
        "agent_id": None if replay_of else agent,
        "session_id": session_id or uuid4().hex,
        "scope": scope,
        "replay_of": replay_of,
        "include": PARTS,
        "dialect": dialect,
    }
    is_blocking = isinstance(client._driver, SyncDriver)
    return (RunBlock if is_blocking else AsyncRunBlock)(client, agent, options)


def tool_from_definition(definition: Mapping[str, Any]) -> RunTool:
    """Raises InvalidResponse."""
    fields = definition.get("function", definition)
    schemas = ("inputSchema", "input_schema", "parameters")
    try:
        parameters = next(fields[name] for name in schemas if name in fields)
        return RunTool(fields["name"], fields.get("description", ""), parameters, definition)
    except (KeyError, StopIteration, TypeError):
        raise InvalidResponse("the response is not the definition of a tool") from None


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
