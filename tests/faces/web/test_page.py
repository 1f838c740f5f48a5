"""The page for people: served whole, shut in, and made of nothing but the public API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.worlds import memory

from carrel.core.access import Actor
from carrel.core.errors import Unauthenticated
from carrel.faces.rest.app import rest
from carrel.faces.rest.endpoint import Headers
from carrel.faces.rest.metrics import Metrics
from carrel.faces.web import assets
from carrel.settings import Settings
from carrel.wiring.app import endpoints

pytestmark = pytest.mark.anyio

TEXTS = {name: asset.body.decode() for name, asset in assets().items()}
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}
ROOTS = [f"/v1/{kind}/{{}}/files" for kind in ("workspaces", "agents", "templates")]
ROOTS += ["/v1/defaults/files"]


@pytest.fixture
async def anybody(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async def nobody(headers: Headers) -> Actor:
        raise Unauthenticated("nobody is known here")

    async with memory(tmp_path) as world:
        app = rest(world, endpoints(Settings()), nobody, metrics=Metrics())
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://carrel") as client:
            yield client


async def test_the_page_and_all_its_parts_are_served(anybody: httpx.AsyncClient) -> None:
    page = await anybody.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    wanted = set(re.findall(r'(?:href|src)="(/ui/[^"]+)"', page.text))
    wanted |= {f"/ui/{name}" for text in SCRIPTS.values() for name in imported(text)}
    assert wanted == {f"/ui/{name}" for name in TEXTS if name != "index.html"}
    for part in wanted:
        answer = await anybody.get(part)
        assert answer.status_code == 200, part
        assert answer.headers["x-content-type-options"] == "nosniff"
    script = await anybody.get("/ui/app.js")
    assert script.headers["content-type"].startswith("text/javascript")


def imported(script: str) -> list[str]:
    return re.findall(r'^import .* from "\./([\w.]+)";$', script, re.MULTILINE)


async def test_what_is_known_already_is_not_sent_again(anybody: httpx.AsyncClient) -> None:
    for path in ("/", "/ui/carrel.css"):
        tag = (await anybody.get(path)).headers["etag"]
        assert (await anybody.get(path, headers={"If-None-Match": tag})).status_code == 304


async def test_nothing_else_is_served_there(anybody: httpx.AsyncClient) -> None:
    for path in ("/ui/__init__.py", "/ui/..%2f__init__.py", "/ui/", "/index.html"):
        answer = await anybody.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path


async def test_the_page_is_shut_in(anybody: httpx.AsyncClient) -> None:
    page = await anybody.get("/")
    policy = dict(
        each.strip().split(" ", 1) for each in page.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    for kind in ("script-src", "style-src", "connect-src", "img-src"):
        assert policy[kind] == "'self'"
    for kind in ("base-uri", "form-action", "frame-ancestors", "trusted-types"):
        assert policy[kind] == "'none'"
    assert page.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", TEXTS)
def test_no_part_names_another_host(name: str) -> None:
    links = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", _without_comments(TEXTS[name]))
    assert [link for link in links if link != "http://www.w3.org/2000/svg"] == []


def _without_comments(text: str) -> str:
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_can_become_markup_or_code(name: str) -> None:
    risky = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    assert not re.search(risky, TEXTS[name])
    if name.endswith(".html"):
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?![^>]* src=)", TEXTS[name])


def test_the_token_is_kept_for_the_tab_and_nowhere_else() -> None:
    everything = "".join(SCRIPTS.values())
    assert "sessionStorage" in everything
    assert not re.search(r"localStorage|document\.cookie|indexedDB", everything)


def named() -> set[str]:
    """Every address that the scripts name, with {} for what is filled in."""
    found = set()
    for text in SCRIPTS.values():
        for literal in re.findall(r'["`](/v1/[^"`?]*|\$\{root\}/[^"`?]*)', text):
            plain = re.sub(r"\$\{enc\(\w+\)\}", "{}", literal)
            roots = ROOTS if plain.startswith("${root}") else [""]
            found |= {plain.replace("${root}", root) for root in roots}
    return found


async def test_every_address_that_the_page_names_is_in_the_api(anybody: httpx.AsyncClient) -> None:
    paths = (await anybody.get("/openapi.json")).json()["paths"]
    known = {re.sub(r"\{\w+\}", "{}", path) for path in paths}
    assert len(named()) > 20
    assert named() <= known


def test_addresses_stand_in_one_place() -> None:
    assert {name for name, text in SCRIPTS.items() if "/v1/" in text} == {"api.js"}
