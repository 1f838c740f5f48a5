"""What an agent is shown, and how its files may change: facts about one entry."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import Forbidden, NotFound, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay import agent_files, pins
from carrel.core.overlay.agent_files import FileSource, NewContent, RenderContext
from carrel.core.overlay.edit import UNCONDITIONAL, PlannedWrite, WriteCondition
from carrel.core.overlay.file_classes import ClassRule, FileClass, FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree

SCOPES = tuple(
    Scope("acme", kind, name)
    for kind, name in (
        (ScopeKind.AGENT, "marco"),
        (ScopeKind.TEMPLATE, "sales"),
        (ScopeKind.DEFAULTS, ""),
    )
)
RULES, SOUL, USER = Path("GUARDRAILS.md"), Path("SOUL.md"), Path("USER.md")
EYE = RenderContext(FileClassRules(), PlaceholderValues(agent_name="Marco"))
OWN = "own"


def blob(text: str) -> Blob:
    return Blob(Digest("sha256:" + hashlib.sha256(text.encode()).hexdigest()), len(text))


def tree(depth: int, says: Mapping[Path, Entry | None], version: int = 1) -> Tree:
    heads = {path: Head(path, version, version, 0, entry) for path, entry in says.items()}
    return Tree(SCOPES[depth], version, heads)


def layers(
    path: Path, own: Entry | None = None, template: str | None = None, defaults: str | None = None
) -> tuple[Tree, ...]:
    said = [own, template and Entry(blob(template)), defaults and Entry(blob(defaults))]
    return tuple(tree(n, {path: entry} if entry else {}) for n, entry in enumerate(said))


def applied(stack: tuple[Tree, ...], edit: PlannedWrite | None) -> tuple[Tree, ...]:
    """The layers once the edit is committed, having checked that what it saw is still so."""
    if edit is None:
        return stack
    path = edit.write.path
    for expect in edit.expects:
        [seen] = [tree for tree in stack if tree.scope == expect.scope]
        assert expect.holds(seen.heads.get(path))
    head = Head(path, stack[0].version(path) + 1, stack[0].revision + 1, 0, edit.write.entry)
    return (Tree(stack[0].scope, head.revision, {**stack[0].heads, path: head}), *stack[1:])


def edited(stack: tuple[Tree, ...], depth: int, path: Path, text: str) -> tuple[Tree, ...]:
    """The layers once somebody has edited one beneath."""
    other = tree(depth, {path: Entry(blob(text))}, stack[depth].version(path) + 1)
    return (*stack[:depth], other, *stack[depth + 1 :])


def shown(stack: tuple[Tree, ...], path: Path) -> tuple[Digest, str] | None:
    file = EYE.resolve(path, stack)
    return None if file is None else (file.blob.digest, file.source_label)


def test_a_live_file_comes_from_the_nearest_layer_that_has_it() -> None:
    below = layers(SOUL, None, None, "kind")
    assert shown(below, SOUL) == (blob("kind").digest, FileSource.DEFAULTS)
    assert shown(layers(SOUL, None, "", "kind"), SOUL) == (blob("kind").digest, FileSource.DEFAULTS)
    assert shown(edited(below, 1, SOUL, ""), SOUL) == (blob("").digest, FileSource.TEMPLATE)
    own = applied(
        below, agent_files.plan_agent_put(below, SOUL, NewContent(blob("mine")), EYE, UNCONDITIONAL)
    )
    assert shown(own, SOUL) == (blob("mine").digest, FileSource.OVERRIDE)


def test_live_files_are_rendered_and_pinned_and_managed_ones_of_its_own_are_not() -> None:
    pin = Entry(blob("be safe"), blob("be safe"))
    rendered = [
        (SOUL, layers(SOUL, Entry(blob("mine")))),
        (SOUL, layers(SOUL, None, "brisk")),
        (USER, layers(USER, None, "about {{HUMAN_NAME}}")),
    ]
    verbatim = [(RULES, layers(RULES, pin)), (USER, layers(USER, Entry(blob("about Ada"))))]
    for path, stack in rendered:
        file = EYE.resolve(path, stack)
        assert file is not None
        assert file.variables == EYE.variables
        assert EYE.variables.key in file.etag
    for path, stack in verbatim:
        file = EYE.resolve(path, stack)
        assert file is not None
        assert file.variables is None


def test_a_managed_file_is_filled_in_from_what_is_newer_and_never_waits_for_a_review() -> None:
    written = Entry(blob("about Ada"), blob("about {{HUMAN_NAME}}"))
    stack = layers(USER, written, None, "about {{HUMAN_NAME}}")
    assert shown(stack, USER) == (blob("about Ada").digest, FileSource.OVERRIDE)
    for edit, origin in ((2, FileSource.DEFAULTS), (1, FileSource.TEMPLATE)):
        newer = edited(stack, edit, USER, "on {{HUMAN_NAME}}")
        file = EYE.resolve(USER, newer)
        assert file is not None
        assert (file.blob, file.source_label) == (blob("on {{HUMAN_NAME}}"), origin)
        assert file.variables == EYE.variables
        assert file.available_update is None
        assert EYE.compose(newer).files[USER] == file
        assert (
            f"{origin} changed since it was written from the profile"
            in agent_files.explain_resolution(USER, newer, file)
        )
    nothing = layers(USER, written)
    assert shown(nothing, USER) == (blob("about Ada").digest, FileSource.OVERRIDE)


def test_a_pinned_file_that_was_never_reviewed_is_not_there() -> None:
    assert shown(layers(RULES, None, "new rules", "rules"), RULES) is None


texts = st.sampled_from(["a", "b", "c"])
steps = st.lists(st.tuples(st.sampled_from(["template", "defaults", "override", "revert"]), texts))


@given(first=texts, history=steps)
def test_no_edit_beneath_moves_a_pinned_file(first: str, history: list[tuple[str, str]]) -> None:
    stack = layers(RULES, None, first)
    stack = applied(stack, pins.plan_pin(stack, RULES))
    pin, shown_text = blob(first), blob(first)
    for what, text in history:
        if what == "override":
            wanted = NewContent(blob(text), accept_template_update=True)
            stack = applied(
                stack, agent_files.plan_agent_put(stack, RULES, wanted, EYE, UNCONDITIONAL)
            )
            shown_text = blob(text)
        elif what == "revert":
            if shown_text == pin:
                with pytest.raises(NotFound):
                    agent_files.plan_agent_delete(stack, RULES, EYE, UNCONDITIONAL)
                continue
            stack = applied(stack, agent_files.plan_agent_delete(stack, RULES, EYE, UNCONDITIONAL))
            shown_text = pin
        else:
            stack = edited(stack, 1 if what == "template" else 2, RULES, text)
        found = EYE.resolve(RULES, stack)
        assert found is not None
        assert found.blob == shown_text
        assert found.source_label == (
            FileSource.PIN if shown_text == pin else FileSource.PINNED_OVERRIDE
        )
        status = pins.pin_status(RULES, stack)
        assert status.pinned == pin
        assert status.update_available == (status.latest != pin)


@given(first=texts, later=texts, mine=texts, seen=texts)
def test_accepting_takes_exactly_what_was_reviewed(
    first: str, later: str, mine: str, seen: str
) -> None:
    stack = layers(RULES, Entry(blob(mine), blob(first)), later)
    if seen != later:
        with pytest.raises(WorkspaceConflict, match="review it again"):
            pins.plan_accept(stack, RULES, blob(seen).digest)
        return
    after = applied(stack, pins.plan_accept(stack, RULES, blob(seen).digest))
    assert shown(after, RULES) == (blob(later).digest, FileSource.PIN)
    assert not pins.pin_status(RULES, after).update_available
    assert pins.plan_accept(after, RULES, blob(seen).digest) is None


def test_what_appears_beneath_later_is_offered_and_comes_with_an_accept() -> None:
    stack = layers(RULES, None, "new rules")
    assert pins.pin_status(RULES, stack).update_available
    after = applied(stack, pins.plan_accept(stack, RULES, blob("new rules").digest))
    assert shown(after, RULES) == (blob("new rules").digest, FileSource.PIN)
    with pytest.raises(NotFound):
        pins.plan_accept(layers(RULES), RULES, blob("x").digest)


def test_an_override_of_a_pinned_file_is_meant_and_a_managed_file_is_never_written() -> None:
    stack = layers(RULES, Entry(blob("a"), blob("a")), "a")
    with pytest.raises(Forbidden, match="pinned"):
        agent_files.plan_agent_put(stack, RULES, NewContent(blob("b")), EYE, UNCONDITIONAL)
    for accepted in (False, True):
        wanted = NewContent(blob("b"), accept_template_update=accepted)
        with pytest.raises(Forbidden, match="managed"):
            agent_files.plan_agent_put(layers(USER, None, "x"), USER, wanted, EYE, UNCONDITIONAL)
    with pytest.raises(Forbidden, match="managed"):
        agent_files.plan_agent_delete(layers(USER, Entry(blob("b"))), USER, EYE, UNCONDITIONAL)


def test_bytes_that_are_inherited_make_no_override() -> None:
    stack = layers(SOUL, None, "brisk")
    assert (
        agent_files.plan_agent_put(stack, SOUL, NewContent(blob("brisk")), EYE, UNCONDITIONAL)
        is None
    )
    own = layers(SOUL, Entry(blob("mine"), blob("brisk")), "brisk")
    back = applied(
        own, agent_files.plan_agent_put(own, SOUL, NewContent(blob("brisk")), EYE, UNCONDITIONAL)
    )
    assert shown(back, SOUL) == (blob("brisk").digest, FileSource.TEMPLATE)


def test_a_stale_tag_never_passes_whatever_has_moved() -> None:
    stack = layers(SOUL, None, "brisk")
    file = EYE.resolve(SOUL, stack)
    assert file is not None
    seen = WriteCondition(frozenset({file.etag}))
    renamed = RenderContext(EYE.classes, PlaceholderValues(agent_name="Polo"))
    wanted = NewContent(blob("mine"))
    assert agent_files.plan_agent_put(stack, SOUL, wanted, EYE, seen) is not None
    for render_context, now in ((renamed, stack), (EYE, edited(stack, 1, SOUL, "brisker"))):
        with pytest.raises(WorkspaceConflict):
            agent_files.plan_agent_put(now, SOUL, wanted, render_context, seen)


def test_becoming_pinned_makes_nothing_jump() -> None:
    for own in (None, Entry(blob("mine"), blob("older"))):
        stack = layers(SOUL, own, "brisk")
        before = EYE.resolve(SOUL, stack)
        tight = RenderContext(
            FileClassRules((ClassRule("SOUL.md", FileClass.PINNED),)), EYE.variables
        )
        after = applied(stack, pins.plan_pin(stack, SOUL))
        found = tight.resolve(SOUL, after)
        assert before is not None
        assert found is not None
        assert found.blob == before.blob
        assert not pins.pin_status(SOUL, after).update_available
        assert pins.plan_pin(after, SOUL) is None


def test_what_a_run_keeps_of_the_eye_gives_the_same_eye_again() -> None:
    rules = tuple(ClassRule(f"r{n}/**", FileClass.PINNED) for n in range(12))
    render_context = RenderContext(
        FileClassRules(rules), PlaceholderValues(agent_name="Marco", human_email="ada@example.org")
    )
    assert RenderContext.from_run_variables(render_context.to_run_variables()) == render_context
    assert (
        RenderContext.from_run_variables(
            {**render_context.to_run_variables(), "NAME": "a caller's own"}
        )
        == render_context
    )
