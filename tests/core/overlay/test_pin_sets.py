"""Shared pins are as good as an agent's own: nobody could tell from what is shown or done."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.overlay.test_agent_files import EYE, RULES, SOUL, blob, tree

from carrel.core.errors import Refusal
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_files
from carrel.core.overlay import pins as overlay_pins
from carrel.core.overlay.agent_files import NewContent
from carrel.core.overlay.edit import UNCONDITIONAL, PlannedWrite
from carrel.core.overlay.pin_sets import pin_set_scope, plan_missing_pins
from carrel.core.store.entry import Entry
from carrel.core.store.tree import Tree

TEXTS = ("one", "two", "three")
PINS = Scope("acme", ScopeKind.PINS, "shared")
blobs = st.sampled_from([blob(text) for text in TEXTS])
upstreams = st.none() | blobs.map(Entry)
pins = st.none() | blobs.map(lambda one: Entry(one, one))
Act = Callable[[tuple[Tree, ...]], PlannedWrite | None]


def layered(
    own: Entry | None, shared: Entry | None, template: Entry | None, defaults: Entry | None
) -> tuple[Tree, ...]:
    def said(entry: Entry | None) -> dict[Path, Entry | None]:
        return {RULES: entry} if entry else {}

    beneath = [tree(depth, said(entry)) for depth, entry in ((1, template), (2, defaults))]
    reviewed = Tree(PINS, 1, tree(0, said(shared)).heads)
    return (tree(0, said(own)), reviewed, *beneath)


ACTS: dict[str, Act] = {
    "put": lambda layers: agent_files.plan_agent_put(
        layers, RULES, NewContent(blob("mine"), accept_template_update=True), EYE, UNCONDITIONAL
    ),
    "delete": lambda layers: agent_files.plan_agent_delete(layers, RULES, EYE, UNCONDITIONAL),
    "accept": lambda layers: overlay_pins.plan_accept(layers, RULES, blob("two").digest),
}


def came_of(act: Act, layers: tuple[Tree, ...]) -> object:
    try:
        edit = act(layers)
    except Refusal as refusal:
        return type(refusal)
    return edit and (edit.write.scope, edit.write.entry)


@given(pins, upstreams, upstreams)
def test_what_is_shown_and_offered_is_the_same(
    pin: Entry | None, template: Entry | None, defaults: Entry | None
) -> None:
    shared, own = layered(None, pin, template, defaults), layered(pin, None, template, defaults)
    for stack in (shared, own):
        file = EYE.resolve(RULES, stack)
        assert (file and file.entry) == pin
    assert overlay_pins.pin_status(RULES, shared) == overlay_pins.pin_status(RULES, own)
    assert set(EYE.compose(shared).files) == set(EYE.compose(own).files)


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@given(pins, upstreams, upstreams)
def test_what_is_done_comes_to_the_same(
    act: Act, pin: Entry | None, template: Entry | None, defaults: Entry | None
) -> None:
    shared, own = layered(None, pin, template, defaults), layered(pin, None, template, defaults)
    assert came_of(act, shared) == came_of(act, own)


@given(pins, st.none() | blobs.map(lambda one: Entry(one, blob("one"))), upstreams)
def test_an_entry_of_its_own_goes_before_what_is_shared(
    shared: Entry | None, own: Entry | None, template: Entry | None
) -> None:
    file = EYE.resolve(RULES, layered(own, shared, template, None))
    assert (file and file.entry) == (own or shared)


def test_shared_pins_say_nothing_of_a_file_that_is_not_pinned() -> None:
    reviewed = Tree(PINS, 1, tree(0, {SOUL: Entry(blob("old"), blob("old"))}).heads)
    layers = (tree(0, {}), reviewed, tree(1, {SOUL: Entry(blob("new"))}), tree(2, {}))
    file = EYE.resolve(SOUL, layers)
    assert file
    assert (file.blob, file.source_label) == (blob("new"), "template")
    assert EYE.resolve(SOUL, (*layers[:2], tree(1, {}), tree(2, {}))) is None


def test_a_set_is_named_after_what_it_says_and_written_once() -> None:
    one, other = Entry(blob("one"), blob("one")), Entry(blob("two"), blob("two"))
    scope = pin_set_scope("acme", {RULES: one, SOUL: other})
    assert scope == pin_set_scope("acme", {SOUL: other, RULES: one})
    assert (
        len({scope, *(pin_set_scope("acme", said) for said in ({RULES: one}, {RULES: other}))}) == 3
    )
    assert pin_set_scope("globex", {RULES: one}).tenant == "globex"
    writes, expects = plan_missing_pins(Tree(scope, 0, {}), {RULES: one, SOUL: other})
    assert [write.path for write in writes] == [RULES, SOUL]
    assert {expect.live for expect in expects} == {False}
    whole = Tree(scope, 1, tree(0, {RULES: one, SOUL: other}).heads)
    assert plan_missing_pins(whole, {RULES: one, SOUL: other}) == ((), ())
