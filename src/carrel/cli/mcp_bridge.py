"""Bridges MCP over stdio to a server's MCP endpoint over HTTP.

A client of a protocol version with a handshake (until 2025) has what it would have on a connection
of its own: forms and subscriptions. The server keeps no connection, so the bridge asks the client
and repeats the call with the answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from carrel.cli.mcp_endpoint import (
    McpEndpoint,
    Message,
    error_reply,
    is_valid_message,
    message_version,
    parse_message,
    with_modern_version,
)
from carrel.cli.mcp_subscriptions import McpSubscriptions

if TYPE_CHECKING:
    import httpx

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_INVALID_PARAMS: Final = -32602
_MAX_MESSAGE_BYTES: Final = 2**24
_CANCELLED_FORM: Final = {"action": "cancel"}


class McpBridge:
    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._endpoint = McpEndpoint(http, url)
        self._subscriptions = McpSubscriptions(self._endpoint, _write_message)
        self._capabilities: Mapping[str, Any] = {}
        """Capabilities that the client sent with `initialize`."""
        self._pending: dict[str, asyncio.Task[None]] = {}
        self._questions: dict[str, asyncio.Future[Message]] = {}
        """Requests to the client without a reply yet, by id."""
        self._question_count = 0

    async def run(self) -> None:
        """Forward messages until stdin ends, then wait for the pending responses."""
        async for line in _read_lines():
            message = parse_message(line)
            if message is None:
                _write_message(error_reply(None, _PARSE_ERROR, "invalid JSON"))
            elif not is_valid_message(message):
                _write_message(error_reply(None, _INVALID_REQUEST, "invalid id or params"))
            elif message.get("method") == "notifications/cancelled":
                self._cancel(message)
            elif message.get("method") == "initialize":
                await self._initialize(message)
            elif "method" not in message and message.get("id") in self._questions:
                self._questions.pop(message["id"]).set_result(message)
            else:
                self._start(message)
        for question in self._questions.values():
            question.cancel()
        await asyncio.gather(*self._pending.values(), return_exceptions=True)
        await self._subscriptions.close()

    def _start(self, message: Message) -> None:
        task, key = asyncio.create_task(self._handle(message)), json.dumps(message.get("id"))
        self._pending[key] = task

        def discard(finished: asyncio.Task[None]) -> None:
            if self._pending.get(key) is finished:
                del self._pending[key]

        task.add_done_callback(discard)

    def _cancel(self, message: Message) -> None:
        request_id = (message.get("params") or {}).get("requestId")
        if task := self._pending.get(json.dumps(request_id)):
            task.cancel()

    async def _initialize(self, message: Message) -> None:
        """Forward the handshake, and announce subscriptions, which the bridge provides."""
        reply = await self._endpoint.request(message)
        result = reply.get("result")
        if isinstance(result, dict):
            self._endpoint.version = result.get("protocolVersion")
            capabilities = (message.get("params") or {}).get("capabilities")
            self._capabilities = capabilities if isinstance(capabilities, dict) else {}
            resources = {"resources": {"subscribe": True, "listChanged": True}}
            offered = {**result.get("capabilities", {}), **resources}
            reply = {**reply, "result": {**result, "capabilities": offered}}
        _write_message(reply)

    async def _handle(self, message: Message) -> None:
        method, params = message.get("method"), message.get("params")
        uri = params.get("uri") if isinstance(params, dict) else None
        if self._endpoint.version is None or message_version(message) is not None:
            await self._forward(message)
        elif method == "resources/subscribe":
            self._reply_empty(message, await self._subscriptions.add(uri))
        elif method == "resources/unsubscribe":
            await self._subscriptions.remove(uri)
            self._reply_empty(message)
        elif method == "tools/call" and "elicitation" in self._capabilities:
            await self._call_with_forms(message)
        else:
            if method == "resources/list":
                await self._subscriptions.start()
            await self._forward(message)

    async def _forward(self, message: Message) -> None:
        async with aclosing(self._endpoint.exchange(message)) as replies:
            async for reply in replies:
                _write_message(reply)

    def _reply_empty(self, message: Message, problem: str = "") -> None:
        id = message.get("id")
        empty: Message = {"jsonrpc": "2.0", "id": id, "result": {}}
        _write_message(error_reply(id, _INVALID_PARAMS, problem) if problem else empty)

    async def _call_with_forms(self, message: Message) -> None:
        """Call a tool; ask the client for each form and repeat the call with the answers."""
        elicitation = {"elicitation": self._capabilities["elicitation"]}
        call = with_modern_version(message, elicitation)
        while True:
            reply = await self._endpoint.request(call, _write_message)
            result = reply.get("result")
            if not isinstance(result, dict) or result.pop("resultType", "") != "input_required":
                return _write_message(reply)
            requests = (result.get("inputRequests") or {}).items()
            answers = {name: await self._ask(request) for name, request in requests}
            state = {"inputResponses": answers, "requestState": result.get("requestState")}
            call = {**call, "params": {**call["params"], **state}}

    async def _ask(self, request: Message) -> Message:
        """Ask the client for a form; a client that cannot answer counts as closing it."""
        self._question_count += 1
        id = f"carrel-{self._question_count}"
        question = self._questions[id] = asyncio.get_running_loop().create_future()
        params = {name: v for name, v in (request.get("params") or {}).items() if name != "mode"}
        _write_message({"jsonrpc": "2.0", "id": id, "method": request["method"], "params": params})
        try:
            result = (await question).get("result")
        finally:
            self._questions.pop(id, None)
        return result if isinstance(result, dict) else _CANCELLED_FORM


async def _read_lines() -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip():
            yield line


def _write_message(message: Message) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
