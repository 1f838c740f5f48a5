"""Compare-and-set of a store's items, which LangGraph has no method for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from agent_fixture import TOKEN, URL

from carrel_client import Client, WorkspaceConflict
from carrel_client.langgraph import CarrelItem, CarrelStore

NAMESPACE = ("counters",)


@pytest.fixture
def store() -> CarrelStore:
    client = Client(URL, TOKEN)
    return CarrelStore(client.workspace(client.workspaces.create("counters").id))


def read(store: CarrelStore, key: str) -> CarrelItem:
    item = store.get(NAMESPACE, key)
    assert isinstance(item, CarrelItem)
    return item


def test_only_the_etag_that_was_read_is_replaced(store: CarrelStore) -> None:
    first = store.compare_and_set(NAMESPACE, "a", {"n": 1}, etag=None)
    item = read(store, "a")
    assert item.etag == first
    second = store.compare_and_set(NAMESPACE, "a", {"n": 2}, etag=first)
    for stale in (first, None):
        with pytest.raises(WorkspaceConflict):
            store.compare_and_set(NAMESPACE, "a", {"n": 3}, etag=stale)
    changed = read(store, "a")
    assert (changed.value, changed.etag) == ({"n": 2}, second)
    assert changed.created_at == item.created_at


def test_concurrent_increments_are_all_counted(store: CarrelStore) -> None:
    store.put(NAMESPACE, "n", {"n": 0})

    def increment(_: int) -> None:
        while True:
            item = read(store, "n")
            try:
                store.compare_and_set(NAMESPACE, "n", {"n": item.value["n"] + 1}, etag=item.etag)
            except WorkspaceConflict:
                continue
            return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(increment, range(12)))
    assert read(store, "n").value == {"n": 12}


def test_item_keeps_the_time_of_its_creation_for_another_writer(store: CarrelStore) -> None:
    store.put(NAMESPACE, "a", {"n": 1})
    created_at = read(store, "a").created_at
    other = CarrelStore(store._files)
    other.batch([])
    other.put(NAMESPACE, "a", {"n": 2})
    item = read(store, "a")
    assert (item.value, item.created_at) == ({"n": 2}, created_at)
    assert item.updated_at > created_at
