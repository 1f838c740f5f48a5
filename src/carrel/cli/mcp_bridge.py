"""Bridges MCP over stdio to a server's MCP endpoint over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx

_NAME_PARAMS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Parameter whose value the protocol requires in the Mcp-Name header, by method."""
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_HEADER_SAFE: Final = re.compile(r"(?!=\?)[!-~](?:[ -~]*[!-~])?")
_INTERNAL_ERROR: Final = -32603
_MAX_MESSAGE_BYTES: Final = 2**24


class McpBridge:
    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http, self._url = http, url
        self._version: str | None = None
        """Protocol version negotiated by `initialize`."""
        self._handshake: Any = None
        self._pending: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Forward messages until stdin ends, then wait for the pending responses."""
        async for line in _read_lines():
            message = _parse_message(line)
            if message is None:
                _write_message(
                    {"jsonrpc": "2.0", "id": None, "error": _error(-32700, "invalid JSON")}
                )
            elif message.get("method") == "notifications/cancelled":
                self._cancel(message)
            elif message.get("method") == "initialize":
                self._handshake = message.get("id")
                await self._forward(message)
            else:
                self._start_forward(message)
        await asyncio.gather(*self._pending.values(), return_exceptions=True)

    def _start_forward(self, message: Mapping[str, Any]) -> None:
        task, key = asyncio.create_task(self._forward(message)), json.dumps(message.get("id"))
        self._pending[key] = task

        def discard(finished: asyncio.Task[None]) -> None:
            if self._pending.get(key) is finished:
                del self._pending[key]

        task.add_done_callback(discard)

    def _cancel(self, message: Mapping[str, Any]) -> None:
        request_id = (message.get("params") or {}).get("requestId")
        if task := self._pending.get(json.dumps(request_id)):
            task.cancel()

    async def _forward(self, message: Mapping[str, Any]) -> None:
        import httpx  # noqa: PLC0415 - so that --help stays quick

        try:
            await self._send(message)
        except httpx.HTTPError as problem:
            detail = str(problem) or type(problem).__name__
            self._reply_error(message, f"no response from the server: {detail}")

    async def _send(self, message: Mapping[str, Any]) -> None:
        body, headers = json.dumps(message).encode(), self._headers(message)
        async with self._http.stream("POST", self._url, content=body, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        _write_line(line.removeprefix("data:").strip())
                return
            text = (await response.aread()).decode(errors="replace")
        reply = _parse_message(text)
        if reply is not None and reply.get("jsonrpc") == "2.0":
            self._record_handshake(reply)
            _write_message({**reply, "id": message["id"]} if "id" in message else reply)
        elif response.is_error:
            reason = (reply or {}).get(
                "message"
            ) or f"the server responded with status {response.status_code}"
            self._reply_error(message, str(reason))

    def _record_handshake(self, reply: Mapping[str, Any]) -> None:
        if self._handshake is not None and reply.get("id") == self._handshake:
            version = (reply.get("result") or {}).get("protocolVersion")
            self._version, self._handshake = version, None

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        headers["Content-Type"] = "application/json"
        params, method = message.get("params"), message.get("method")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version, str) and isinstance(method, str):
            headers |= {
                "MCP-Protocol-Version": _header_value(version),
                "Mcp-Method": _header_value(method),
            }
            name = params.get(_NAME_PARAMS.get(method, ""))
            return headers | {"Mcp-Name": _header_value(name)} if isinstance(name, str) else headers
        return headers | {"MCP-Protocol-Version": self._version} if self._version else headers

    def _reply_error(self, message: Mapping[str, Any], reason: str) -> None:
        if "id" in message and "method" in message:
            _write_message(
                {"jsonrpc": "2.0", "id": message["id"], "error": _error(_INTERNAL_ERROR, reason)}
            )


def _error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _header_value(value: str) -> str:
    """Encode a value for a header; base64 if it is not plain ASCII."""
    if _HEADER_SAFE.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="


def _parse_message(text: str | bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


async def _read_lines() -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip():
            yield line


def _write_message(message: Mapping[str, Any]) -> None:
    _write_line(json.dumps(message))


def _write_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
