"""From a client's stdin to a server's MCP over HTTP, and back: each message as it is."""

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

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What the protocol wants to see in a header of these."""
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_PLAIN: Final = re.compile(r"(?!=\?)[!-~](?:[ -~]*[!-~])?")
_INTERNAL: Final = -32603
_LONGEST: Final = 2**24
"""Bytes of a message."""


class Bridge:
    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http, self._url = http, url
        self._version: str | None = None
        """That a handshake has agreed on."""
        self._handshake: Any = None
        self._open: dict[str, asyncio.Task[None]] = {}

    async def cross(self) -> None:
        """Until stdin ends; what was asked is answered before."""
        async for line in _lines():
            message = _message(line)
            if message is None:
                _say({"jsonrpc": "2.0", "id": None, "error": _error(-32700, "it is not JSON")})
            elif message.get("method") == "notifications/cancelled":
                self._cancel(message)
            elif message.get("method") == "initialize":
                self._handshake = message.get("id")
                await self._pass(message)
            else:
                self._set_out(message)
        await asyncio.gather(*self._open.values(), return_exceptions=True)

    def _set_out(self, message: Mapping[str, Any]) -> None:
        task, name = asyncio.create_task(self._pass(message)), json.dumps(message.get("id"))
        self._open[name] = task

        def over(done: asyncio.Task[None]) -> None:
            if self._open.get(name) is done:
                del self._open[name]

        task.add_done_callback(over)

    def _cancel(self, message: Mapping[str, Any]) -> None:
        asked = (message.get("params") or {}).get("requestId")
        if task := self._open.get(json.dumps(asked)):
            task.cancel()

    async def _pass(self, message: Mapping[str, Any]) -> None:
        import httpx  # noqa: PLC0415 - so that --help stays quick

        try:
            await self._sent(message)
        except httpx.HTTPError as problem:
            told = str(problem) or type(problem).__name__
            self._failed(message, f"the server does not answer: {told}")

    async def _sent(self, message: Mapping[str, Any]) -> None:
        body, head = json.dumps(message).encode(), self._headers(message)
        async with self._http.stream("POST", self._url, content=body, headers=head) as answer:
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        _write(line.removeprefix("data:").strip())
                return
            text = (await answer.aread()).decode(errors="replace")
        told = _message(text)
        if told is not None and told.get("jsonrpc") == "2.0":
            self._note(told)
            _say({**told, "id": message["id"]} if "id" in message else told)
        elif answer.is_error:
            said = (told or {}).get("message") or f"the server says {answer.status_code}"
            self._failed(message, str(said))

    def _note(self, told: Mapping[str, Any]) -> None:
        if self._handshake is not None and told.get("id") == self._handshake:
            found = (told.get("result") or {}).get("protocolVersion")
            self._version, self._handshake = found, None

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        head = {"Accept": "application/json, text/event-stream"}
        head["Content-Type"] = "application/json"
        params, method = message.get("params"), message.get("method")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        said = meta.get(_VERSION) if isinstance(meta, dict) else None
        if isinstance(said, str) and isinstance(method, str):
            head |= {"MCP-Protocol-Version": _field(said), "Mcp-Method": _field(method)}
            name = params.get(_NAMED.get(method, ""))
            return head | {"Mcp-Name": _field(name)} if isinstance(name, str) else head
        return head | {"MCP-Protocol-Version": self._version} if self._version else head

    def _failed(self, message: Mapping[str, Any], reason: str) -> None:
        if "id" in message and "method" in message:
            _say({"jsonrpc": "2.0", "id": message["id"], "error": _error(_INTERNAL, reason)})


def _error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message}


def _field(value: str) -> str:
    """As a header can carry it."""
    if _PLAIN.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="


def _message(text: str | bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


async def _lines() -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip():
            yield line


def _say(message: Mapping[str, Any]) -> None:
    _write(json.dumps(message))


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
