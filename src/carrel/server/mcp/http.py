"""MCP beside the REST face, and over stdio: loaded once there is time, or a client comes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct

from carrel.actions.overlay import stacks
from carrel.core.access import Actor, Permission
from carrel.core.errors import Forbidden, NotFound, Refusal, ValidationError
from carrel.ports import Ports
from carrel.server.http.app import Mount
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Headers
from carrel.server.http.problems import TOO_SLOW, WRONG_METHOD, problem, refusal_response
from carrel.server.http.read_timeouts import ReadTimeouts
from carrel.server.http.request_log import REQUEST_ID, RequestLog
from carrel.server.http.request_parsing import (
    BodyLimits,
    ClientDisconnected,
    ReadTimeout,
    merge_headers,
    read_body,
)
from carrel.server.http.response import Response

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from carrel.server.mcp import Visit

PREFIX: Final = "/mcp/agents"
_AGENT: Final = re.compile(rb"/mcp/agents/([^/]+)/?")
_ASKS: Final = frozenset({"scope", "session", "run"})
_LIMITS: Final = BodyLimits()
_LISTEN: Final = "subscriptions/listen"
CALM: Final = 15.0
"""Seconds that a server has for what comes first when it starts; one for a moment never pays."""
_NEVER: Final = logging.CRITICAL + 1


class Mcp:
    """An ASGI app that answers for one agent after the other, each by the credential it is shown.

    Nothing of a client is kept between its requests, so that any process can answer any of them.
    """

    def __init__(
        self,
        ports: Ports,
        authenticate: Callable[[Headers], Awaitable[Actor]],
        closing: asyncio.Event,
        site: SiteSettings,
    ) -> None:
        self._ports = ports
        self._site = site
        self._authenticate = authenticate
        self._closing = closing
        self._patience = ReadTimeouts()
        self._engine: asyncio.Future[_McpTransport] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            visited, body = await self._admitted(scope, receive)
            engine = await self._loaded()
            visit = await engine.visit(self._ports, *visited)
        except ClientDisconnected:
            return
        except ReadTimeout:
            close = [(b"connection", b"close")]
            said = problem(TOO_SLOW, "the body took too long to arrive", headers=close)
            return await _say(said, send)
        except _EarlyResponse as said_already:
            return await _say(said_already.answer, send)
        except Refusal as refusal:
            return await _say(refusal_response(refusal), send)
        await engine.serve({**scope, engine.visit_key: visit}, _replayed(body, receive), send)

    async def _admitted(
        self, scope: Any, receive: Any
    ) -> tuple[tuple[Actor, str, Mapping[str, str]], bytes]:
        """Who asks for which agent and how, and the body. Raises a Refusal, Gone or TooSlow."""
        headers = merge_headers(scope["headers"])
        https = scope.get("scheme") == "https"
        shown = self._site.credential(headers, scope["method"], https)
        actor = await self._authenticate(shown)
        agent = await _agent_of(self._ports, actor, scope)
        asks = _query_parameters(scope["query_string"])
        if scope["method"] != "POST":
            allow = [(b"allow", b"POST")]
            raise _EarlyResponse(problem(WRONG_METHOD, "this address knows POST", headers=allow))
        body = await read_body(receive, headers, _LIMITS.body, _LIMITS, self._patience)
        return (actor, agent, asks), body

    async def _loaded(self) -> _McpTransport:
        if self._engine is None:
            self._engine = asyncio.ensure_future(self._load())
        return await asyncio.shield(self._engine)

    async def warm(self, calm: float) -> None:
        """Load it once the server has been up for so long, so that no client has to wait for it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), calm)
            return
        with suppress(Exception):  # of which everybody who comes will be told
            await self._loaded()

    async def _load(self) -> _McpTransport:
        await asyncio.to_thread(preload)
        engine = _McpTransport(self._closing)
        await engine.start()
        return engine

    async def close(self) -> None:
        if self._engine is not None:
            await (await self._engine).stop()


class _EarlyResponse(Exception):
    """There is nothing more to do than to say this."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer


async def _agent_of(ports: Ports, actor: Actor, scope: Any) -> str:
    """Raises Forbidden, and Missing for one that this caller may not know of."""
    if actor.platform:
        raise Forbidden("this credential is for another purpose")
    actor.require(Permission.WORKSPACE_READ)
    raw = scope.get("raw_path") or scope["path"].encode()
    found = _AGENT.fullmatch(raw.partition(b"?")[0])
    if found is None:
        raise NotFound("there is nothing at this address")
    name = unquote(found[1].decode("latin-1"), errors="replace")
    return (await stacks.agent_stack(ports, actor, name))[0].name


def _query_parameters(query: bytes) -> Mapping[str, str]:
    """Raises Malformed."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    found = dict(pairs)
    if len(found) != len(pairs) or not set(found) <= _ASKS:
        raise ValidationError("the address may say scope, session and run, each once")
    return found


def preload() -> None:
    """The library logs what clients send, which is nothing to be logged."""
    import carrel.server.mcp.server  # noqa: F401, PLC0415 - it takes a while to load

    logging.getLogger("mcp").setLevel(_NEVER)


class _McpTransport:
    """The library's own servers: one that answers in JSON alone, one for what may be streamed."""

    def __init__(self, closing: asyncio.Event) -> None:
        from mcp.server.streamable_http_manager import (  # noqa: PLC0415 - it takes a while
            StreamableHTTPSessionManager,
        )
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS  # noqa: PLC0415 - as above

        from carrel.server.mcp import VISIT, Circumstances, Visit, made  # noqa: PLC0415 - as above

        self.visit_key = VISIT
        self._visit, self._circumstances = Visit, Circumstances
        self._handshakes = frozenset(one.encode() for one in HANDSHAKE_PROTOCOL_VERSIONS)
        server = made(_of_request, _log_failure, closing)

        def manager(json_response: bool) -> StreamableHTTPSessionManager:
            return StreamableHTTPSessionManager(
                server,
                json_response=json_response,
                stateless=True,
                max_request_body_size=_LIMITS.body,
            )

        self._plain, self._streaming = manager(True), manager(False)
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def visit(self, ports: Ports, actor: Actor, agent: str, asks: Mapping[str, str]) -> Visit:
        visit = self._visit(ports, actor, agent, self._circumstances(**asks))
        await visit.tool_context(None)
        return visit

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        version = dict(scope["headers"]).get(b"mcp-protocol-version")
        modern = version is not None and version not in self._handshakes
        manager = self._streaming if modern else self._plain
        await manager.handle_request(scope, receive, send)

    async def start(self) -> None:
        """In a task of its own, since what is begun there has to end there."""
        ready = asyncio.Event()

        async def live() -> None:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._plain.run())
                await stack.enter_async_context(self._streaming.run())
                ready.set()
                await self._stop.wait()

        self._task = asyncio.create_task(live())
        await ready.wait()

    async def stop(self) -> None:
        self._stop.set()
        if self._task is not None:
            await self._task


async def _of_request(ctx: Any) -> Visit:
    visit: Visit = ctx.request.scope["carrel.visit"]
    return visit


def _log_failure(failure: BaseException) -> str:
    id = REQUEST_ID.get()
    RequestLog().failure(id, failure)
    return id


class _Message(Struct):
    method: str = ""


def _listens(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Message).method == _LISTEN
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _replayed(body: bytes, receive: Any) -> Callable[[], Awaitable[Any]]:
    """The body that was read; and then, to whoever listens, whatever comes.

    Others who leave take nothing back: as over REST what a call has begun is brought to its end,
    so that the files of a command are kept and whoever sends the call again is told of it.
    """
    told = False

    async def again() -> Any:
        nonlocal told
        if told:
            return await (receive() if _listens(body) else asyncio.Event().wait())
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _say(answer: Response, send: Any) -> None:
    headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


@asynccontextmanager
async def mounted(
    ports: Ports,
    authenticate: Callable[[Headers], Awaitable[Actor]],
    closing: asyncio.Event,
    site: SiteSettings = SiteSettings(),
    calm: float = CALM,
) -> AsyncIterator[Mount]:
    app = Mcp(ports, authenticate, closing, site)
    warming = asyncio.create_task(app.warm(calm))
    try:
        yield Mount(PREFIX, app)
    finally:
        warming.cancel()
        await asyncio.wait([warming])
        await app.close()
