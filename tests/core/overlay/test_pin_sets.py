"""Shared pins behave exactly like an agent's own pins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.overlay.test_agent_resolution import CONTEXT, RULES, SOUL, blob, tree

from carrel.core.errors import Refusal
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_writes
from carrel.core.overlay import pins as overlay_pins
from carrel.core.overlay.agent_writes import NewContent
from carrel.core.overlay.pin_sets import pin_set_scope, plan_missing_pins
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.overlay.write_condition import UNCONDITIONAL
from carrel.core.store.entry import Entry
from carrel.core.store.tree import Tree

TEXTS = ("one", "two", "three")
PINS = Scope("acme", ScopeKind.PINS, "shared")
blobs = st.sampled_from([blob(text) for text in TEXTS])
upstreams = st.none() | blobs.map(Entry)
pins = st.none() | blobs.map(lambda item: Entry(item, item))
Act = Callable[[tuple[Tree, ...]], PlannedWrite | None]


def layered(
    own: Entry | None, shared: Entry | None, template: Entry | None, defaults: Entry | None
) -> tuple[Tree, ...]:
    def heads(entry: Entry | None) -> dict[Path, Entry | None]:
        return {RULES: entry} if entry else {}

    beneath = [tree(depth, heads(entry)) for depth, entry in ((1, template), (2, defaults))]
    reviewed = Tree(PINS, 1, tree(0, heads(shared)).heads)
    return (tree(0, heads(own)), reviewed, *beneath)


ACTS: dict[str, Act] = {
    "put": lambda layers: agent_writes.plan_agent_put(
        layers, RULES, NewContent(blob("mine"), accept_template_update=True), CONTEXT, UNCONDITIONAL
    ),
    "delete": lambda layers: agent_writes.plan_agent_delete(layers, RULES, CONTEXT, UNCONDITIONAL),
    "accept": lambda layers: overlay_pins.plan_accept(layers, RULES, blob("two").digest),
}


def outcome_of(act: Act, layers: tuple[Tree, ...]) -> object:
    try:
        edit = act(layers)
    except Refusal as refusal:
        return type(refusal)
    return edit and (edit.write.scope, edit.write.entry)


@given(pins, upstreams, upstreams)
def test_a_shared_pin_resolves_and_offers_updates_like_an_own_pin(
    pin: Entry | None, template: Entry | None, defaults: Entry | None
) -> None:
    shared, own = layered(None, pin, template, defaults), layered(pin, None, template, defaults)
    for stack in (shared, own):
        file = CONTEXT.resolve(RULES, stack)
        assert (file and file.entry) == pin
    assert overlay_pins.pin_status(RULES, shared) == overlay_pins.pin_status(RULES, own)
    assert set(CONTEXT.compose(shared).files) == set(CONTEXT.compose(own).files)


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@given(pins, upstreams, upstreams)
def test_every_action_has_the_same_outcome_on_shared_and_own_pins(
    act: Act, pin: Entry | None, template: Entry | None, defaults: Entry | None
) -> None:
    shared, own = layered(None, pin, template, defaults), layered(pin, None, template, defaults)
    assert outcome_of(act, shared) == outcome_of(act, own)


@given(pins, st.none() | blobs.map(lambda item: Entry(item, blob("one"))), upstreams)
def test_an_own_entry_wins_over_a_shared_pin(
    shared: Entry | None, own: Entry | None, template: Entry | None
) -> None:
    file = CONTEXT.resolve(RULES, layered(own, shared, template, None))
    assert (file and file.entry) == (own or shared)


def test_a_shared_pin_of_a_live_file_is_ignored() -> None:
    reviewed = Tree(PINS, 1, tree(0, {SOUL: Entry(blob("old"), blob("old"))}).heads)
    layers = (tree(0, {}), reviewed, tree(1, {SOUL: Entry(blob("new"))}), tree(2, {}))
    file = CONTEXT.resolve(SOUL, layers)
    assert file
    assert (file.blob, file.source_label) == (blob("new"), "template")
    assert CONTEXT.resolve(SOUL, (*layers[:2], tree(1, {}), tree(2, {}))) is None


def test_a_pin_set_is_named_by_its_content_and_written_once() -> None:
    first, second = Entry(blob("one"), blob("one")), Entry(blob("two"), blob("two"))
    scope = pin_set_scope("acme", {RULES: first, SOUL: second})
    assert scope == pin_set_scope("acme", {SOUL: second, RULES: first})
    assert (
        len(
            {
                scope,
                *(pin_set_scope("acme", pinned) for pinned in ({RULES: first}, {RULES: second})),
            }
        )
        == 3
    )
    assert pin_set_scope("globex", {RULES: first}).tenant == "globex"
    writes, expects = plan_missing_pins(Tree(scope, 0, {}), {RULES: first, SOUL: second})
    assert [write.path for write in writes] == [RULES, SOUL]
    assert {expect.live for expect in expects} == {False}
    complete = Tree(scope, 1, tree(0, {RULES: first, SOUL: second}).heads)
    assert plan_missing_pins(complete, {RULES: first, SOUL: second}) == ((), ())
