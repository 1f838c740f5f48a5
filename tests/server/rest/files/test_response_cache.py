"""The response cache: equal bytes, one build per key, bounded size."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from carrel.core.identifiers import Path, Scope, ScopeKind, digest
from carrel.core.lru_cache import LruCache
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.compose import File
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree
from carrel.server.http.response import encode
from carrel.server.http.response_cache import ResponseCache
from carrel.server.rest.files.file_models import OverlayFileListModel, overlay_file_to_model
from carrel.server.rest.files.listing_rows import encode_listing
from carrel.server.rest.files.listing_templates import build_template

pytestmark = pytest.mark.anyio

AGENT, DEFAULTS = Scope("acme", ScopeKind.AGENT, "marco"), Scope("acme", ScopeKind.DEFAULTS, "")
contents = st.sampled_from(
    [
        '"etag":"\\u0000"',
        "",
        "{{AGENT_NAME}} is brisk",
        "plain",
        "x" * 20_000,
        '\\"\n\u2028\0"etag":',
        "{{UNKNOWN}}",
    ]
)
paths = st.sampled_from(
    [Path(text) for text in ("SOUL.md", '"etag":"', "a/b.md", "GUARDRAILS.md", "ä\u200d\U0001f331")]
)
texts = st.dictionaries(paths, contents, max_size=5)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def parts() -> LruCache[Any, Any]:
    return LruCache(2**20)


def tree(scope: Scope, contents: dict[Path, str]) -> Tree:
    def head(path: Path, text: str) -> Head:
        blob = Blob(digest(text.encode()), len(text.encode()))
        return Head(path, 3, 7, 1_800_000_000_000, Entry(blob, blob))

    return Tree(scope, 7, {path: head(path, text) for path, text in contents.items()})


@given(texts, texts, st.text(min_size=1), st.booleans())
def test_rows_encoded_in_pieces_equal_the_encoded_list(
    own: dict[Path, str], below: dict[Path, str], name: str, raw: bool
) -> None:
    rows, layers = parts(), (tree(AGENT, own), tree(DEFAULTS, below))
    stored = {digest(text.encode()): text.encode() for text in (*own.values(), *below.values())}
    for agent in (name, "Marco", name):
        files = (
            AgentFileResolver(variables=PlaceholderValues(agent_name=agent)).compose(layers).files
        )
        listed: list[tuple[File, bytes]] = [(f, stored[f.blob.digest]) for f in files.values()]
        full = OverlayFileListModel(files=[overlay_file_to_model(*row, raw=raw) for row in listed])
        assert encode_listing(rows, "store", listed, raw=raw).join() == encode(full)


@given(texts, st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_a_filled_listing_template_equals_the_encoded_list(
    below: dict[Path, str], names: list[str]
) -> None:
    layers = (
        tree(AGENT, {}),
        tree(Scope("acme", ScopeKind.PINS, "p"), below),
        tree(DEFAULTS, below),
    )
    stored = {digest(text.encode()): text.encode() for text in below.values()}
    for name in names:
        resolver = AgentFileResolver(variables=PlaceholderValues(agent_name=name))
        inherited = resolver.inherited_files(layers)
        assert inherited is not None
        template = build_template(inherited, stored)
        assert template
        files = resolver.compose(layers).files.values()
        rows = [overlay_file_to_model(file, stored[file.blob.digest]) for file in files]
        assert template.fill(resolver.variables).join() == encode(OverlayFileListModel(files=rows))


class SlowBuilder:
    """A builder that waits until it is released and counts its calls."""

    def __init__(self) -> None:
        self.times = 0
        self.started = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self) -> object:
        self.times += 1
        self.started.set()
        await self.go.wait()
        return {"made": self.times}


async def start_all(make: SlowBuilder, *requests: Awaitable[bytes]) -> list[asyncio.Task[bytes]]:
    tasks = [asyncio.ensure_future(request) for request in requests]
    await make.started.wait()
    return tasks


async def test_concurrent_requests_for_one_key_build_once() -> None:
    cache, make = ResponseCache(), SlowBuilder()
    tasks = await start_all(make, *(cache.get_or_create("key", make) for _ in range(5)))
    make.go.set()
    assert set(await asyncio.gather(*tasks)) == {b'{"made":1}'}
    assert (make.times, cache.get("key")) == (1, b'{"made":1}')


async def test_a_cancelled_request_does_not_cancel_the_others() -> None:
    cache, make = ResponseCache(), SlowBuilder()
    first, *others = await start_all(make, *(cache.get_or_create("key", make) for _ in range(3)))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    make.go.set()
    assert set(await asyncio.gather(*others)) == {b'{"made":2}'}
    with pytest.raises(ZeroDivisionError):
        await cache.get_or_create("other", _broken)
    assert await cache.get_or_create("other", make) == b'{"made":3}'


async def _broken() -> object:
    raise ZeroDivisionError


class Uncacheable(Struct):
    is_cacheable: bool = False


async def test_an_uncacheable_value_is_not_stored() -> None:
    cache = ResponseCache()

    async def make() -> object:
        return Uncacheable()

    assert await cache.get_or_create("key", make) == b'{"is_cacheable":false}'
    assert cache.get("key") is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 60)), max_size=40))
def test_the_cache_never_exceeds_its_limit(requests: list[tuple[int, int]]) -> None:
    cache, stored = ResponseCache(max_bytes=100, max_entry_bytes=50), {}
    for key, size in requests:
        cached = cache.get(key)
        if cached is None:
            stored[key] = cache.put(key, "x" * size)
        else:
            assert cached == stored[key]
    sizes = [len(body) for key in stored if isinstance(body := cache._entries.peek(key), bytes)]
    assert cache._entries.weight == sum(sizes) <= 100


async def test_pieces_that_are_read_often_are_stored_joined() -> None:
    cache = ResponseCache()
    layers = (tree(AGENT, {}), tree(DEFAULTS, {Path("SOUL.md"): "kind"}))
    files = AgentFileResolver().compose(layers).files.values()
    pieces = encode_listing(parts(), "store", [(file, b"kind") for file in files], raw=False)
    body = cache.put("key", pieces)
    assert [cache.get("key") for _ in range(4)] == [body] * 4
    assert cache._entries.peek("key") == body
    assert cache._entries.weight == len(body)
