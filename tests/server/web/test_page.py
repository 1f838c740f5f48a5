"""The page for people: served whole, shut in, and made of nothing but the public API."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.stores import open_ports

from carrel.core.access import Actor
from carrel.core.errors import Unauthenticated
from carrel.ports import Ports
from carrel.server.http.app import create_app
from carrel.server.http.endpoint import Headers
from carrel.server.http.metrics import Metrics
from carrel.server.web import PREFIXES, http, load_assets, load_page
from carrel.settings import Settings
from carrel.wiring.server_app import endpoints

pytestmark = pytest.mark.anyio

PARTS = load_assets()
FIRST_LOAD = 250 * 1024
UI = File(__file__).resolve().parents[3] / "ui"


@pytest.fixture
async def anybody(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async def nobody(ports: Ports, headers: Headers) -> Actor:
        raise Unauthenticated("nobody is known here")

    async with open_ports(tmp_path) as ports:
        told = endpoints(Settings())
        app = create_app(ports, told, nobody, metrics=Metrics(), mounts=http.MOUNTS)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://carrel") as client:
            yield client


def policy_of(answer: httpx.Response) -> dict[str, str]:
    told = answer.headers["content-security-policy"].split(";")
    return dict(each.strip().split(" ", 1) for each in told)


def loaded_first(text: str) -> set[str]:
    """The scripts that a browser loads before anything is shown."""
    found, ahead = set[str](), set(re.findall(r'(?:src|href)="(/ui/[^"]+\.js)"', text))
    while ahead:
        name = ahead.pop()
        found.add(name)
        script = PARTS[name].body.decode()
        statics = re.findall(r'(?:from|import)\s*"\./([\w.-]+\.js)"', script)
        ahead |= {f"/ui/{each}" for each in statics} - found
    return found


async def test_the_page_and_all_its_parts_are_served(anybody: httpx.AsyncClient) -> None:
    whole = await anybody.get("/")
    assert whole.headers["content-type"] == "text/html; charset=utf-8"
    assert "/icon.svg" in PARTS
    for part in {*PARTS, *re.findall(r'(?:href|src)="(/[^"]+)"', whole.text)} - {"/docs"}:
        answer = await anybody.get(part)
        assert answer.status_code == 200, part
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.content == PARTS[part].body
    script = next(name for name in PARTS if name.endswith(".js"))
    assert (await anybody.get(script)).headers["content-type"].startswith("text/javascript")


async def test_every_screen_has_an_address_that_can_be_opened(anybody: httpx.AsyncClient) -> None:
    for path in (*PREFIXES, "/agents/a%2Fb/workspace", "/agent-templates/defaults?file=SOUL.md"):
        answer = await anybody.get(path)
        assert answer.status_code == 200, path
        assert '<div id="app">' in answer.text
        assert (await anybody.head(path)).content == b""
        assert (await anybody.post(path)).status_code == 405
    for path in ("/agentsx", "/index.html", "/nowhere"):
        assert (await anybody.get(path)).status_code == 404, path


async def test_parts_are_kept_for_ever_and_the_page_never(anybody: httpx.AsyncClient) -> None:
    for name in PARTS.keys() - {"/icon.svg"}:
        assert re.search(r"-[\w-]{8}\.\w+$", name), "a name must change with what it holds"
    name = next(name for name in PARTS if name.endswith(".css"))
    part = await anybody.get(name)
    assert "immutable" in part.headers["cache-control"]
    known = {"If-None-Match": part.headers["etag"]}
    assert (await anybody.get(name, headers=known)).status_code == 304
    assert (await anybody.get("/")).headers["cache-control"] == "no-store"


async def test_text_comes_squeezed_to_those_who_take_it(anybody: httpx.AsyncClient) -> None:
    name = next(name for name in PARTS if name.endswith(".js"))
    async with anybody.stream("GET", name, headers={"Accept-Encoding": "br, gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert gzip.decompress(raw) == PARTS[name].body
    plain = await anybody.get(name, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


async def test_nothing_else_is_served_there(anybody: httpx.AsyncClient) -> None:
    for path in ("/ui/__init__.py", "/ui/..%2f__init__.py", "/ui/..%2ficon.svg", "/ui/"):
        answer = await anybody.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path


async def test_the_page_is_shut_in(anybody: httpx.AsyncClient) -> None:
    seen = set()
    for path in ("/", "/agents", "/sign-in"):
        answer = await anybody.get(path)
        policy = policy_of(answer)
        assert policy["default-src"] == "'none'"
        for kind in ("script-src", "connect-src", "img-src", "font-src"):
            assert policy[kind] == "'self'", kind
        assert policy["require-trusted-types-for"] == "'script'"
        assert policy["trusted-types"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        nonce = re.search(r"'nonce-([\w-]{20,})'", policy["style-src"])
        assert nonce
        assert f'content="{nonce[1]}"' in answer.text
        seen.add(nonce[1])
    assert len(seen) == 3, "a nonce is good for one answer"


async def test_the_page_has_no_script_or_style_of_its_own() -> None:
    text = load_page().body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)


def test_the_first_load_is_small_and_the_editor_is_not_in_it() -> None:
    first = loaded_first(load_page().body.decode())
    squeezed = {name: len(PARTS[name].gzipped or b"") for name in first}
    assert sum(squeezed.values()) < FIRST_LOAD, squeezed
    later = [name for name in PARTS if name.endswith(".js") and name not in first]
    assert any(b"cm-editor" in PARTS[name].body for name in later)
    assert not any(b"cm-editor" in PARTS[name].body for name in first)


def test_the_page_asks_for_nothing_but_the_public_api() -> None:
    public = re.compile(r"/(?:v1|accounts)/|/graphql$|/readyz$|/docs$|/icon\.svg$|/sign-in")
    for source in (UI / "src" / "api").glob("*.ts"):
        if ".generated." in source.name:
            continue
        asked = re.findall(
            r"""(?:GET|POST|PUT|PATCH|DELETE)\(\s*["`](/[^"`]*)""", source.read_text()
        )
        assert all(public.match(path) for path in asked), source.name
    for source in (UI / "src").rglob("*.ts*"):
        assert "dangerouslySetInnerHTML" not in source.read_text(), source.name
        assert not re.search(r"https?://(?!\$)", source.read_text()), source.name


def test_a_class_of_one_screen_is_not_restyled_by_another() -> None:
    common = {"tokens.css", "ground.css", "parts.css", "frame.css", "editor.css", "index.css"}
    owners: dict[str, set[str]] = {}
    for sheet in (UI / "src" / "styles").glob("*.css"):
        for name in re.findall(r"^(\.[a-z-]+) \{$", sheet.read_text(), re.MULTILINE):
            owners.setdefault(name, set()).add("common" if sheet.name in common else sheet.name)
    assert {name: sorted(sheets) for name, sheets in owners.items() if len(sheets) > 1} == {}
