"""LRU cache: bounded by weight, evicts what was used least recently."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.lru_cache import LruCache

keys = st.integers(0, 5)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("get"), keys, st.just(0)),
        st.tuples(st.just("put"), keys, st.integers(0, 8)),
        st.tuples(st.just("remove"), keys, st.just(0)),
    ),
    max_size=60,
)


@given(operations)
def test_cache_equals_a_model_in_order_of_use(steps: list[tuple[str, int, int]]) -> None:
    cache: LruCache[int, str] = LruCache(max_weight=12, max_entry_weight=6)
    model: OrderedDict[int, tuple[str, int]] = OrderedDict()
    hits = misses = 0
    for number, (step, key, weight) in enumerate(steps):
        if step == "get":
            expected = model.get(key)
            assert cache.get(key) == (expected and expected[0])
            if expected is None:
                misses += 1
            else:
                hits += 1
                model.move_to_end(key)
        else:
            model.pop(key, None)
            if step == "remove":
                cache.remove(key)
                continue
            cache.put(key, str(number), weight)
            if weight <= 6:
                model[key] = (str(number), weight)
            while sum(entry[1] for entry in model.values()) > 12:
                model.popitem(last=False)
    assert {key: cache.peek(key) for key in range(6) if cache.peek(key)} == {
        key: value for key, (value, _) in model.items()
    }
    assert (len(cache), cache.hits, cache.misses) == (len(model), hits, misses)
    assert cache.weight == sum(weight for _, weight in model.values()) <= 12


def test_an_entry_weighs_1_by_default() -> None:
    cache: LruCache[str, int] = LruCache(2)
    for number, key in enumerate("abac"):
        cache.put(key, number)
    assert [cache.get(key) for key in "abc"] == [2, None, 3]
    cache.clear()
    assert (len(cache), cache.weight, cache.get("a")) == (0, 0, None)
