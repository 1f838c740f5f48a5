"""The guides are true: each is followed, command by command, on a server of its own."""

from __future__ import annotations

import base64
import time
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.server_process import CARREL, COLD, TOKEN, environment, serving
from tests.support.shell import BLOCK, compare, fits, said, steps

from carrel.core.webhooks import signature_headers

ROOT = File(__file__).parents[2]
GUIDES = ROOT / "docs/guide"
PAGES = [ROOT / "README.md", *sorted(GUIDES.rglob("*.md"))]
FOLLOWED = [str(file.relative_to(ROOT)) for file in PAGES if steps(file.read_text("utf-8"))]
THERE, THEIRS = "http://127.0.0.1:8787", "a-token-of-your-own-choosing"
RECEIVER, REACHED = "https://example.com/", "https://93.184.216.34/"
"""The receiver of webhooks that a guide names may have no address where there is no network."""


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_guide_says_what_happens(name: str, tmp_path: File) -> None:
    text = (ROOT / name).read_text("utf-8").replace(THEIRS, TOKEN).replace(RECEIVER, REACHED)
    program = COLD if name == "README.md" else CARREL
    with serving(tmp_path / "store", program=program) as live:
        found = steps(text.replace(THERE, live.url))
        commands = [each.commands for each in found]
        answers = said(commands, tmp_path, environment(tmp_path / "store"), program)
    for step, answer in zip(found, answers, strict=True):
        compare(step, answer)


def test_most_guides_are_followed() -> None:
    assert "README.md" in FOLLOWED
    assert {"docs/guide/build/files-and-keys.md", "docs/guide/operate/serve.md"} <= set(FOLLOWED)


def test_what_the_page_leaves_open_fits_anything_that_is_there() -> None:
    assert fits({"a": "…", "b": [1]}, {"a": 5, "b": [1]})
    assert not fits({"a": "…"}, {"a": None})
    assert not fits({"a": 1}, {"a": 1, "b": 2})
    assert not fits([1], [1, 2])


def test_the_guide_tells_genuine_webhooks_from_others() -> None:
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
