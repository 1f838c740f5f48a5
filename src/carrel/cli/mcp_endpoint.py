"""HTTP client of a server's MCP endpoint, message by message."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import httpx

Message: TypeAlias = Mapping[str, Any]
MODERN_VERSION: Final = "2026-07-28"
"""Protocol version without a handshake, in which a server can ask for forms."""
INTERNAL_ERROR: Final = -32603
_NAME_PARAMS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Parameter whose value the protocol requires in the Mcp-Name header, by method."""
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
_HEADER_SAFE: Final = re.compile(r"(?!=\?)[!-~](?:[ -~]*[!-~])?")


class McpEndpoint:
    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http, self._url = http, url
        self.version: str | None = None
        """Protocol version negotiated by `initialize`; None if there was none."""

    async def exchange(self, message: Message) -> AsyncGenerator[dict[str, Any], None]:
        """Send a message and yield the server's messages; failures become error replies."""
        import httpx  # noqa: PLC0415 - so that --help stays quick

        try:
            async with aclosing(self._send(message)) as replies:
                async for reply in replies:
                    yield reply
        except httpx.HTTPError as problem:
            detail = str(problem) or type(problem).__name__
            for reply in _error_replies(message, f"no response from the server: {detail}"):
                yield reply

    async def request(
        self, message: Message, notify: Callable[[Message], None] | None = None
    ) -> dict[str, Any]:
        """Send a request and return its reply; `notify` receives notifications before it."""
        reply = error_reply(message["id"], INTERNAL_ERROR, "no reply from the server")
        async with aclosing(self.exchange(message)) as replies:
            async for received in replies:
                if "method" not in received:
                    reply = received
                elif notify is not None:
                    notify(received)
        return reply

    async def _send(self, message: Message) -> AsyncGenerator[dict[str, Any], None]:
        body, headers = json.dumps(message).encode(), self._headers(message)
        async with self._http.stream("POST", self._url, content=body, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for line in response.aiter_lines():
                    received = parse_message(line.removeprefix("data:"))
                    if line.startswith("data:") and received is not None:
                        yield received
                return
            text = (await response.aread()).decode(errors="replace")
        reply = parse_message(text)
        if reply is not None and reply.get("jsonrpc") == "2.0":
            yield {**reply, "id": message["id"]} if "id" in message else reply
        elif response.is_error:
            status = f"the server responded with status {response.status_code}"
            for error in _error_replies(message, str((reply or {}).get("message") or status)):
                yield error

    def _headers(self, message: Message) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        headers["Content-Type"] = "application/json"
        params, method = message.get("params"), message.get("method")
        params = params if isinstance(params, dict) else {}
        version = message_version(message)
        if version is not None and isinstance(method, str):
            headers |= {
                "MCP-Protocol-Version": _header_value(version),
                "Mcp-Method": _header_value(method),
            }
            name = params.get(_NAME_PARAMS.get(method, ""))
            return headers | {"Mcp-Name": _header_value(name)} if isinstance(name, str) else headers
        return headers | {"MCP-Protocol-Version": self.version} if self.version else headers


def message_version(message: Message) -> str | None:
    """Protocol version that the message itself names; None before 2026."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def with_modern_version(message: Message, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Message in the protocol without a handshake, from a client with these capabilities."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    meta = {**meta, _VERSION_KEY: MODERN_VERSION, _CAPABILITIES_KEY: dict(capabilities)}
    return {**message, "params": {**params, "_meta": meta}}


def parse_message(text: str | bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def is_valid_message(message: Message) -> bool:
    """Whether id and params have the types that the protocol requires."""
    has_id = isinstance(message.get("id"), str | int | float | None)
    needs_id = message.get("method") in {"initialize", "tools/call"}
    has_params = isinstance(message.get("params"), dict | None)
    return has_id and has_params and (not needs_id or message.get("id") is not None)


def error_reply(id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def _error_replies(message: Message, reason: str) -> list[dict[str, Any]]:
    """Error reply to a request; none to a notification or a reply."""
    if "id" not in message or "method" not in message:
        return []
    return [error_reply(message["id"], INTERNAL_ERROR, reason)]


def _header_value(value: str) -> str:
    """Encode a value for a header; base64 if it is not plain ASCII."""
    if _HEADER_SAFE.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="
