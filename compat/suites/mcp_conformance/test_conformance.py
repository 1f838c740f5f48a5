"""The server scenarios of the MCP conformance suite, against the endpoint of one agent.

The suite sends no token and uses the names of its own fixtures. A proxy adds the token and replaces
the names by those of the agent's tools, files and prompt.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
import uvicorn
from agent_fixture import TOKEN, URL, create_agent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from carrel_client import Client

FOLDER: Final = File(__file__).parent
BIN: Final = File(sys.executable).parent
PATH: Final = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
SCENARIOS: Final = (
    *("server-initialize", "logging-set-level", "ping", "completion-complete", "tools-list"),
    *("tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-error"),
    *("tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-with-logging"),
    *("tools-call-with-progress", "tools-call-sampling", "tools-call-elicitation"),
    *("json-schema-2020-12", "elicitation-sep1034-defaults", "server-sse-polling"),
    *("server-sse-multiple-streams", "elicitation-sep1330-enums", "resources-list"),
    *("resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("resources-subscribe", "resources-unsubscribe", "prompts-list", "prompts-get-simple"),
    *("prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"),
    "dns-rebinding-protection",
)
TOOLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "test_simple_text": ("who_am_i", {}),
    "test_error_handling": ("forget", {}),
    "test_tool_with_progress": ("bash", {"command": "true"}),
}
"""Tools and arguments by the name of a fixture."""
SKILL_PROMPTS: Final = ("test_prompt_with_arguments", "test_prompt_with_embedded_resource")
"""Fixtures that the prompt of a skill replaces; the values of their arguments are its request."""
SKILL_MD: Final = "---\nname: refunds\ndescription: Pay back.\n---\nAsk.\n"
FILES: Final = {
    "test://static-text": "static.txt",
    "test://static-binary": "static.png",
    "test://template/123/data": "template/123/data.json",
}


@pytest.fixture(scope="session")
def suite() -> File:
    """The installed suite."""
    command = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=FOLDER, env=PATH, check=True)
    return FOLDER / "node_modules" / ".bin" / "conformance"


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Address of a proxy to an agent with the files of the fixtures."""
    with Client(URL, TOKEN) as client:
        slug = create_agent(client, "bypass").slug
        agent = client.agent(slug)
        agent.put("static.txt", "A text.")
        agent.upload("static.png", b"\x89PNG\r\n\x1a\n" + secrets.token_bytes(8))
        agent.put("template/123/data.json", '{"id": "123"}')
        agent.put(
            "skills/refunds/SKILL.md", "---\nname: refunds\ndescription: Pay back.\n---\nAsk."
        )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(proxy(slug), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://localhost:{listener.getsockname()[1]}/mcp"
        server.should_exit = True
        thread.join()


def proxy(slug: str) -> Starlette:
    http = httpx.AsyncClient(timeout=60)

    async def forward(request: Request) -> StreamingResponse:
        body = with_own_names(await request.body(), slug)
        dropped = {"content-length", "connection"}
        headers = [row for row in request.headers.items() if row[0] not in dropped]
        headers.append(("authorization", f"Bearer {TOKEN}"))
        target = f"{URL}/mcp/agents/{slug}"
        sent = http.build_request(request.method, target, headers=headers, content=body)
        response = await http.send(sent, stream=True)

        async def parts() -> AsyncIterator[bytes]:
            try:
                async for part in response.aiter_raw():
                    yield part
            finally:
                await response.aclose()

        media_type = response.headers.get("content-type")
        return StreamingResponse(parts(), response.status_code, media_type=media_type)

    return Starlette(routes=[Route("/mcp", forward, methods=["GET", "POST", "DELETE"])])


def with_own_names(body: bytes, slug: str) -> bytes:
    """The request with the agent's names instead of the fixtures'."""
    try:
        message = json.loads(body)
        params = message["params"]
    except (ValueError, KeyError, TypeError):
        return body
    if params.get("uri") in FILES:
        params["uri"] = f"carrel://agents/{slug}/files/{FILES[params['uri']]}"
    elif message["method"] == "tools/call" and params["name"] in TOOLS:
        params["name"], params["arguments"] = TOOLS[params["name"]]
    elif message["method"] == "prompts/get" and params["name"] == "test_simple_prompt":
        params["name"] = "system"
    elif message["method"] == "prompts/get" and params["name"] in SKILL_PROMPTS:
        request = " ".join(params["arguments"].values())
        params |= {"name": "skill", "arguments": {"name": "refunds", "request": request}}
    return json.dumps(message).encode()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(suite: File, endpoint: str, scenario: str) -> None:
    command = [str(suite), "server", "--url", endpoint, "--scenario", scenario]
    completed = subprocess.run(
        command, cwd=FOLDER, env=PATH, capture_output=True, text=True, timeout=120, check=False
    )
    assert completed.returncode == 0, completed.stdout[-4000:]
