"""The programs of the guide for runtimes."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.client.server_fixture import json_of
from tests.support.server_process import PLAIN, TOKEN, Live, serving
from tests.support.shell import BLOCK

GUIDE = File(__file__).parents[2] / "docs/guide/build/runtime-client.md"
SOUL = "You are {{AGENT_NAME}}. Be patient.\n"


def prepare(live: Live) -> None:
    """What the page does with curl."""
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=live.url, headers=head, verify=PLAIN) as http:
        json_of(http.post("/v1/templates", json={"slug": "support", "name": "Support"}))
        agent = {"slug": "ada", "name": "Ada", "templateId": "support"}
        json_of(http.post("/v1/agents", json=agent))
        json_of(http.put("/v1/templates/support/files/SOUL.md", json={"content": SOUL}))


@pytest.mark.anyio
async def test_programs_of_the_guide_run_in_order(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text("utf-8")
    names: dict[str, Any] = {}
    with serving(tmp_path / "store") as live:
        prepare(live)
        text = text.replace("http://127.0.0.1:8787", live.url)
        text = text.replace("a-token-of-your-own-choosing", TOKEN)
        programs = [body for kind, body in BLOCK.findall(text) if kind == "python"]
        for program in programs:
            code = compile(program, str(GUIDE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
            result = eval(code, names)
            if inspect.isawaitable(result):
                await result
    assert len(programs) > 4
    assert names["run"].status == "completed"
