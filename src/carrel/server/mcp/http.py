"""ASGI app for MCP over streamable HTTP. The SDK is loaded in the background."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct, field

from carrel.actions.overlay import stacks
from carrel.core.access import Actor, Permission
from carrel.core.errors import Forbidden, NotFound, Refusal, ValidationError, WorkspaceTooLarge
from carrel.ports import Ports, request_scope
from carrel.server.http.app import Mount
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Headers
from carrel.server.http.error_responses import (
    METHOD_NOT_ALLOWED,
    REQUEST_TIMEOUT,
    problem_response,
    refusal_response,
)
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

    from carrel.server.mcp import McpRequest

PREFIX: Final = "/mcp/agents"
_AGENT: Final = re.compile(rb"/mcp/agents/([^/]+)/?")
_QUERY_NAMES: Final = frozenset({"scope", "session", "run"})
_LIMITS: Final = BodyLimits()
_LISTEN_METHOD: Final = "subscriptions/listen"
WARMUP_DELAY_SECONDS: Final = 15.0
"""Delay after startup before the SDK is loaded; short-lived servers never load it."""
_LOGGING_OFF: Final = logging.CRITICAL + 1


class McpApp:
    """ASGI app that serves MCP for every agent, authenticated per request.

    Stateless: no client state is kept between requests, so that any process can serve any of them.
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
        self._read_timeouts = ReadTimeouts()
        self._transport: asyncio.Future[_McpTransport] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        token = request_scope.begin(receive)
        try:
            await self._respond(scope, receive, send)
        finally:
            request_scope.end(token)

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            request_args, body = await self._admit(scope, receive)
            transport = await self._get_transport()
            request = await transport.create_request(self._ports, *request_args)
        except ClientDisconnected:
            return
        except ReadTimeout:
            close = [(b"connection", b"close")]
            response = problem_response(
                REQUEST_TIMEOUT, "timed out reading the request body", headers=close
            )
            return await _send_response(response, send)
        except _EarlyResponse as early:
            return await _send_response(early.response, send)
        except Refusal as refusal:
            return await _send_response(refusal_response(refusal), send)
        message = _parse_message(body)
        if message.method == _LISTEN_METHOD and (revision := request_scope.current()):
            revision.is_open = False  # The request stays open and must see every change.
        await transport.serve(
            {**scope, transport.request_key: request},
            _replay_body(body, receive),
            send,
            wants_progress=message.params.meta.progress_token is not None,
        )

    async def _admit(
        self, scope: Any, receive: Any
    ) -> tuple[tuple[Actor, str, Mapping[str, str], str], bytes]:
        """Check the source, authenticate, resolve the agent and read the body.

        Raises a Refusal, ClientDisconnected or ReadTimeout.
        """
        headers = merge_headers(scope["headers"])
        https = scope.get("scheme") == "https"
        self._site.require_trusted_source(headers, https)
        credential_headers = self._site.with_session_token(headers, scope["method"], https)
        actor = await self._authenticate(credential_headers)
        agent = await _load_agent_id(self._ports, actor, scope)
        parameters = _parse_query(scope["query_string"])
        if scope["method"] != "POST":
            allow = [(b"allow", b"POST")]
            raise _EarlyResponse(
                problem_response(
                    METHOD_NOT_ALLOWED, "method not allowed; allowed: POST", headers=allow
                )
            )
        body = await read_body(
            receive, headers, _LIMITS.max_bytes, _LIMITS, self._read_timeouts, WorkspaceTooLarge
        )
        host = headers.get(b"host", b"").decode("latin-1")
        return (actor, agent, parameters, self._site.base_url(host, https)), body

    async def _get_transport(self) -> _McpTransport:
        if self._transport is None:
            self._transport = asyncio.ensure_future(self._load())
        return await asyncio.shield(self._transport)

    async def warm_up(self, delay: float) -> None:
        """Load the SDK after `delay` seconds, so that no client waits for it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), delay)
            return
        with suppress(Exception):  # each request reports the failure again
            await self._get_transport()

    async def _load(self) -> _McpTransport:
        await asyncio.to_thread(preload)
        transport = _McpTransport(self._closing)
        await transport.start()
        return transport

    async def close(self) -> None:
        if self._transport is not None:
            await (await self._transport).stop()


class _EarlyResponse(Exception):
    """Ends the request with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


async def _load_agent_id(ports: Ports, actor: Actor, scope: Any) -> str:
    """Agent id of the path. Raises Forbidden, and NotFound if unknown to the caller."""
    if actor.platform:
        raise Forbidden("this kind of credential cannot call this endpoint")
    actor.require(Permission.WORKSPACE_READ)
    raw = scope.get("raw_path") or scope["path"].encode()
    match = _AGENT.fullmatch(raw.partition(b"?")[0])
    if match is None:
        raise NotFound("no such endpoint")
    name = unquote(match[1].decode("latin-1"), errors="replace")
    return (await stacks.agent_stack(ports, actor, name))[0].name


def _parse_query(query: bytes) -> Mapping[str, str]:
    """Parse scope, session and run. Raises ValidationError."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    parameters = dict(pairs)
    if len(parameters) != len(pairs) or not set(parameters) <= _QUERY_NAMES:
        raise ValidationError("valid query parameters: scope, session and run, at most once each")
    return parameters


def preload() -> None:
    """Import the SDK and turn off its logging, which includes request content."""
    import carrel.server.mcp.server  # noqa: F401, PLC0415 - slow import

    logging.getLogger("mcp").setLevel(_LOGGING_OFF)


class _McpTransport:
    """SDK session managers: one responds with JSON, one may stream."""

    def __init__(self, closing: asyncio.Event) -> None:
        from mcp.server.streamable_http_manager import (  # noqa: PLC0415 - slow import
            StreamableHTTPSessionManager,
        )
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS  # noqa: PLC0415 - as above

        from carrel.server.mcp import (  # noqa: PLC0415 - as above
            REQUEST_SCOPE_KEY,
            CallScope,
            McpRequest,
            create_server,
        )

        self.request_key = REQUEST_SCOPE_KEY
        self._request_class, self._call_scope_class = McpRequest, CallScope
        self._handshakes = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)
        server = create_server(_request_from_scope, _log_failure, closing)

        def manager(json_response: bool) -> StreamableHTTPSessionManager:
            return StreamableHTTPSessionManager(
                server,
                json_response=json_response,
                stateless=True,
                max_request_body_size=_LIMITS.max_bytes,
            )

        self._json_manager, self._streaming_manager = manager(True), manager(False)
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def create_request(
        self, ports: Ports, actor: Actor, agent: str, parameters: Mapping[str, str], url: str
    ) -> McpRequest:
        call_scope = self._call_scope_class(**parameters)
        request = self._request_class(ports, actor, agent, call_scope, url)
        await request.tool_context(None)
        return request

    async def serve(self, scope: Any, receive: Any, send: Any, *, wants_progress: bool) -> None:
        version = dict(scope["headers"]).get(b"mcp-protocol-version")
        modern = version is not None and version not in self._handshakes
        streams = modern or wants_progress
        manager = self._streaming_manager if streams else self._json_manager
        await manager.handle_request(scope, receive, send)

    async def start(self) -> None:
        """Run the managers in their own task: they must exit in the task they started in."""
        ready = asyncio.Event()

        async def run_managers() -> None:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._json_manager.run())
                await stack.enter_async_context(self._streaming_manager.run())
                ready.set()
                await self._stop.wait()

        self._task = asyncio.create_task(run_managers())
        await ready.wait()

    async def stop(self) -> None:
        self._stop.set()
        if self._task is not None:
            await self._task


async def _request_from_scope(ctx: Any) -> McpRequest:
    request: McpRequest = ctx.request.scope["carrel.mcp_request"]
    return request


def _log_failure(failure: BaseException) -> str:
    id = REQUEST_ID.get()
    RequestLog().failure(id, failure)
    return id


class _RequestMeta(Struct, rename="camel"):
    progress_token: str | int | None = None


class _RequestParams(Struct):
    meta: _RequestMeta = field(name="_meta", default_factory=_RequestMeta)


class _JsonRpcMessage(Struct):
    method: str = ""
    params: _RequestParams = field(default_factory=_RequestParams)


_NO_MESSAGE: Final = _JsonRpcMessage()


def _parse_message(body: bytes) -> _JsonRpcMessage:
    """The fields that decide how to respond; the SDK parses the whole message."""
    try:
        return msgspec.json.decode(body, type=_JsonRpcMessage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NO_MESSAGE


def _replay_body(body: bytes, receive: Any) -> Callable[[], Awaitable[Any]]:
    """Receive function that replays the body.

    Only listen requests then see a disconnect. Other calls are not cancelled by a disconnect: as
    over REST, a started call completes, so that its changes are saved and a retry gets its result.
    Only a command without a call id is stopped, by the tool itself.
    """
    replayed = False

    async def receive_again() -> Any:
        nonlocal replayed
        if replayed:
            return await (
                receive()
                if _parse_message(body).method == _LISTEN_METHOD
                else asyncio.Event().wait()
            )
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _send_response(response: Response, send: Any) -> None:
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


@asynccontextmanager
async def mount(
    ports: Ports,
    authenticate: Callable[[Headers], Awaitable[Actor]],
    closing: asyncio.Event,
    site: SiteSettings = SiteSettings(),
    warmup_delay: float = WARMUP_DELAY_SECONDS,
) -> AsyncIterator[Mount]:
    app = McpApp(ports, authenticate, closing, site)
    warmup_task = asyncio.create_task(app.warm_up(warmup_delay))
    try:
        yield Mount(PREFIX, app)
    finally:
        warmup_task.cancel()
        await asyncio.wait([warmup_task])
        await app.close()
