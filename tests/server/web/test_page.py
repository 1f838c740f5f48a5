"""The console page: complete, restricted by CSP, using only the public API."""

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
from carrel.server.http.app import create_app
from carrel.server.http.endpoint import Headers
from carrel.server.http.metrics import Metrics
from carrel.server.web import PREFIXES, http, load_assets, load_page
from carrel.settings import Settings
from carrel.wiring.server_app import endpoints

pytestmark = pytest.mark.anyio

ASSETS = load_assets()
FIRST_LOAD = 250 * 1024
UI = File(__file__).resolve().parents[3] / "ui"


@pytest.fixture
async def anonymous(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async def reject(headers: Headers) -> Actor:
        raise Unauthenticated("no credential is accepted")

    async with open_ports(tmp_path) as ports:
        all_endpoints = endpoints(Settings())
        app = create_app(ports, all_endpoints, reject, metrics=Metrics(), mounts=http.MOUNTS)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://carrel") as client:
            yield client


def policy_of(answer: httpx.Response) -> dict[str, str]:
    directives = answer.headers["content-security-policy"].split(";")
    return dict(directive.strip().split(" ", 1) for directive in directives)


def loaded_first(text: str) -> set[str]:
    """The scripts that a browser loads before the first render, the text's imports included."""
    loaded, pending = set[str](), set(re.findall(r'(?:src|href)="(/ui/[^"]+\.js)"', text))
    while pending:
        name = pending.pop()
        loaded.add(name)
        script = ASSETS[name].body.decode()
        statics = re.findall(r'(?:from|import)\s*"\./([\w.-]+\.js)"', script)
        pending |= {f"/ui/{script_name}" for script_name in statics} - loaded
    return loaded


async def test_the_page_and_its_assets_are_served(anonymous: httpx.AsyncClient) -> None:
    page = await anonymous.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/icon.svg" in ASSETS
    for part in {*ASSETS, *re.findall(r'(?:href|src)="(/[^"]+)"', page.text)} - {"/docs"}:
        answer = await anonymous.get(part)
        assert answer.status_code == 200, part
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.content == ASSETS[part].body
    script = next(name for name in ASSETS if name.endswith(".js"))
    assert (await anonymous.get(script)).headers["content-type"].startswith("text/javascript")


async def test_every_screen_has_a_url_that_can_be_opened(anonymous: httpx.AsyncClient) -> None:
    for path in (*PREFIXES, "/agents/a%2Fb/workspace", "/agent-templates/defaults?file=SOUL.md"):
        answer = await anonymous.get(path)
        assert answer.status_code == 200, path
        assert '<div id="app">' in answer.text
        assert (await anonymous.head(path)).content == b""
        assert (await anonymous.post(path)).status_code == 405
    for path in ("/agentsx", "/index.html", "/nowhere"):
        assert (await anonymous.get(path)).status_code == 404, path


async def test_assets_are_immutable_and_the_page_is_not_cached(
    anonymous: httpx.AsyncClient,
) -> None:
    for name in ASSETS.keys() - {"/icon.svg"}:
        assert re.search(r"-[\w-]{8}\.\w+$", name), "a name must change with its content"
    name = next(name for name in ASSETS if name.endswith(".css"))
    part = await anonymous.get(name)
    assert "immutable" in part.headers["cache-control"]
    cached = {"If-None-Match": part.headers["etag"]}
    assert (await anonymous.get(name, headers=cached)).status_code == 304
    assert (await anonymous.get("/")).headers["cache-control"] == "no-store"


async def test_text_assets_are_gzipped_if_the_client_accepts_it(
    anonymous: httpx.AsyncClient,
) -> None:
    name = next(name for name in ASSETS if name.endswith(".js"))
    async with anonymous.stream("GET", name, headers={"Accept-Encoding": "br, gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert gzip.decompress(raw) == ASSETS[name].body
    plain = await anonymous.get(name, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


async def test_other_paths_under_ui_are_404(anonymous: httpx.AsyncClient) -> None:
    for path in ("/ui/__init__.py", "/ui/..%2f__init__.py", "/ui/..%2ficon.svg", "/ui/"):
        answer = await anonymous.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path


async def test_the_page_has_a_strict_content_security_policy(anonymous: httpx.AsyncClient) -> None:
    nonces = set()
    for path in ("/", "/agents", "/sign-in"):
        answer = await anonymous.get(path)
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
        nonces.add(nonce[1])
    assert len(nonces) == 3, "a nonce is used for one response"


async def test_the_page_has_no_inline_script_or_style() -> None:
    text = load_page().body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)


def test_the_first_load_is_small_and_the_editor_is_not_in_it() -> None:
    page = load_page().body.decode()
    # The overview is the first screen; its chunk is named after its file.
    screens = [name for name in ASSETS if re.fullmatch(r"/ui/overview-[\w-]{8}\.js", name)]
    assert len(screens) == 1
    styles = re.findall(r'href="(/ui/[^"]+\.css)"', page)
    assert styles
    first = {*styles, *loaded_first(page + f'<script src="{screens[0]}">')}
    gzipped_sizes = {name: len(ASSETS[name].gzip_body or b"") for name in first}
    assert sum(gzipped_sizes.values()) < FIRST_LOAD, gzipped_sizes
    later = [name for name in ASSETS if name.endswith(".js") and name not in first]
    assert any(b"cm-editor" in ASSETS[name].body for name in later)
    scripts = first.difference(styles)
    assert not any(b"cm-editor" in ASSETS[name].body for name in scripts)


def test_the_page_requests_only_the_public_api() -> None:
    public = re.compile(r"/(?:v1|accounts)/|/graphql$|/readyz$|/docs$|/icon\.svg$|/sign-in")
    for source in (UI / "src" / "api").glob("*.ts"):
        if ".generated." in source.name:
            continue
        paths = re.findall(
            r"""(?:GET|POST|PUT|PATCH|DELETE)\(\s*["`](/[^"`]*)""", source.read_text()
        )
        assert all(public.match(path) for path in paths), source.name
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
