"""The Python examples of the READMEs and of the runtime guide run against a server."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import json_of
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving
from tests.support.shell import BLOCK

ROOT = File(__file__).parents[2]
GUIDE = "docs/guide/build/runtime-client.md"
SOUL = "You are {{AGENT_NAME}}. Be patient.\n"


def prepare(live: ServerProcess) -> None:
    """Create the template and the agent that the pages create with curl."""
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=live.url, headers=head, verify=PLAIN) as http:
        json_of(http.post("/v1/templates", json={"slug": "support", "name": "Support"}))
        agent = {"slug": "ada", "name": "Ada", "templateId": "support"}
        json_of(http.post("/v1/agents", json=agent))
        json_of(http.put("/v1/templates/support/files/SOUL.md", json={"content": SOUL}))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("page", "min_programs"), [("README.md", 1), ("client/README.md", 1), (GUIDE, 5)]
)
async def test_python_examples_run_in_order_and_complete_a_run(
    page: str, min_programs: int, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text("utf-8")
    names: dict[str, Any] = {}
    with serving(tmp_path / "store") as live:
        prepare(live)
        text = text.replace("http://127.0.0.1:8787", live.url)
        text = text.replace("a-token-of-your-own-choosing", TOKEN)
        programs = [body for kind, body in BLOCK.findall(text) if kind == "python"]
        for program in programs:
            code = compile(program, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
            result = eval(code, names)
            if inspect.isawaitable(result):
                await result
    assert len(programs) >= min_programs
    assert names["run"].status == "completed"
