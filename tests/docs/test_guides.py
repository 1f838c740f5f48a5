"""Every guide is executed, command by command, on its own server."""

from __future__ import annotations

import base64
import time
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.server_process import CARREL, COLD, TOKEN, environment, serving
from tests.support.shell import BLOCK, compare, matches, run_commands, steps

from carrel.core.webhooks import signature_headers

ROOT = File(__file__).parents[2]
GUIDES = ROOT / "docs/guide"
PAGES = [ROOT / "README.md", *sorted(GUIDES.rglob("*.md"))]
EXECUTED_PAGES = [str(file.relative_to(ROOT)) for file in PAGES if steps(file.read_text("utf-8"))]
DOCUMENTED_URL, DOCUMENTED_TOKEN = "http://127.0.0.1:8787", "a-token-of-your-own-choosing"
RECEIVER, PUBLIC_RECEIVER = "https://example.com/", "https://93.184.216.34/"
"""The documented webhook receiver may not resolve without a network."""


@pytest.mark.parametrize("name", EXECUTED_PAGES)
def test_guide_has_the_output_of_its_commands(name: str, tmp_path: File) -> None:
    text = (
        (ROOT / name)
        .read_text("utf-8")
        .replace(DOCUMENTED_TOKEN, TOKEN)
        .replace(RECEIVER, PUBLIC_RECEIVER)
    )
    program = COLD if name == "README.md" else CARREL
    with serving(tmp_path / "store", program=program) as live:
        page_steps = steps(text.replace(DOCUMENTED_URL, live.url))
        commands = [step.commands for step in page_steps]
        answers = run_commands(commands, tmp_path, environment(tmp_path / "store"), program)
    for step, answer in zip(page_steps, answers, strict=True):
        compare(step, answer)


def test_most_guides_are_executed() -> None:
    assert "README.md" in EXECUTED_PAGES
    assert {"docs/guide/build/files-and-keys.md", "docs/guide/operate/serve.md"} <= set(
        EXECUTED_PAGES
    )


def test_ellipsis_of_a_page_matches_anything() -> None:
    assert matches({"a": "…", "b": [1]}, {"a": 5, "b": [1]})
    assert not matches({"a": "…"}, {"a": None})
    assert not matches({"a": 1}, {"a": 1, "b": 2})
    assert not matches([1], [1, 2])


def test_guide_verifies_webhook_signatures() -> None:
    text = (GUIDES / "extend/webhooks-and-events.md").read_text("utf-8")
    [example] = [body for kind, body in BLOCK.findall(text) if kind == "python"]
    names: dict[str, Any] = {}
    exec(example, names)
    key, body = bytes(range(32)), b'{"type":"workspace.updated"}'
    secret = "whsec_" + base64.b64encode(key).decode()
    headers = signature_headers(key, "msg_1", int(time.time() * 1000), body)
    assert names["genuine"](secret, headers, body)
    assert not names["genuine"](secret, headers, body + b" ")
    assert not names["genuine"](secret, signature_headers(bytes(32), "msg_1", 0, body), body)
    old = signature_headers(key, "msg_1", int(time.time() - 3600) * 1000, body)
    assert not names["genuine"](secret, old, body)
