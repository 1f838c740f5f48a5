"""Tenants take turns, and each tenant's items keep their order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.sandbox.fair_queue import FairQueue

SERVE = ""
tenants = st.sampled_from("abcd")


def test_one_item_waits_for_one_turn_of_a_tenant_with_a_hundred() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        queue.push("greedy", f"greedy {number}")
    for number in range(4):
        assert queue.pop() == f"greedy {number}"
    queue.push("modest", "modest")
    assert queue.pop() == "modest"
    assert queue.pop() == "greedy 4"


@given(st.lists(st.one_of(tenants, st.just(SERVE), st.just(SERVE)), max_size=60))
def test_while_an_item_is_first_each_other_tenant_is_served_once_at_most(steps: list[str]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    waiting: dict[str, list[int]] = {name: [] for name in "abcd"}
    served_since: dict[str, Counter[str]] = {}
    for number, tenant in enumerate([*steps, *[SERVE] * len(steps)]):
        if tenant != SERVE:
            if not waiting[tenant]:
                served_since[tenant] = Counter()
            waiting[tenant].append(number)
            queue.push(tenant, (tenant, number))
            assert queue.count(tenant) == len(waiting[tenant])
            continue
        item = queue.pop()
        if item is None:
            assert not any(waiting.values())
            continue
        name, first = item
        assert first == waiting[name].pop(0), "in order of arrival"
        served_since[name] = Counter()
        for other in (other for other in waiting if other != name and waiting[other]):
            served_since[other][name] += 1
            assert served_since[other][name] == 1
    assert len(queue) == 0


@given(st.lists(tenants, min_size=1, max_size=40), st.data())
def test_a_removed_item_costs_its_tenant_no_turn(pushed: list[str], data: st.DataObject) -> None:
    with_removed: FairQueue[int] = FairQueue()
    without: FairQueue[int] = FairQueue()
    with_removed.push("d", -1)
    removed = data.draw(st.sets(st.integers(1, len(pushed))))
    with_removed.remove("d", -1)
    for number, tenant in enumerate(pushed, 1):
        with_removed.push(tenant, number)
        if number in removed and with_removed.count(tenant) > 1:
            with_removed.remove(tenant, number)
        else:
            without.push(tenant, number)
    assert [with_removed.pop() for _ in pushed] == [without.pop() for _ in pushed]


def test_blocked_items_do_not_hold_back_others() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("busy 1", "busy 2", "free"):
        queue.push("a", item)
    assert queue.pop(lambda item: item.startswith("busy")) == "free"
    assert queue.pop(lambda item: item.startswith("busy")) is None
    assert queue.pop() == "busy 1"


def test_tenants_that_were_served_are_forgotten() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(10_000):
        queue.push(f"tenant {number}", number)
        queue.push("steady", -1)
        queue.pop()
        queue.pop()
    assert len(queue._turns) < 200
