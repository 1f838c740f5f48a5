"""How an agent's files are resolved and which writes are allowed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import Forbidden, NotFound, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay import agent_resolution, agent_writes, pins
from carrel.core.overlay.agent_resolution import AgentFileResolver, FileSource
from carrel.core.overlay.agent_writes import NewContent
from carrel.core.overlay.file_classes import ClassRule, FileClass, FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
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
CONTEXT = AgentFileResolver(FileClassRules(), PlaceholderValues(agent_name="Marco"))
OWN = "own"


def blob(text: str) -> Blob:
    return Blob(Digest("sha256:" + hashlib.sha256(text.encode()).hexdigest()), len(text))


def tree(depth: int, entries: Mapping[Path, Entry | None], version: int = 1) -> Tree:
    heads = {path: Head(path, version, version, 0, entry) for path, entry in entries.items()}
    return Tree(SCOPES[depth], version, heads)


def layers(
    path: Path, own: Entry | None = None, template: str | None = None, defaults: str | None = None
) -> tuple[Tree, ...]:
    entries = [own, template and Entry(blob(template)), defaults and Entry(blob(defaults))]
    return tuple(tree(n, {path: entry} if entry else {}) for n, entry in enumerate(entries))


def apply_edit(stack: tuple[Tree, ...], edit: PlannedWrite | None) -> tuple[Tree, ...]:
    """The layers after the edit is committed; asserts that its expectations hold."""
    if edit is None:
        return stack
    path = edit.write.path
    for expect in edit.expects:
        [current] = [tree for tree in stack if tree.scope == expect.scope]
        assert expect.holds(current.heads.get(path))
    head = Head(path, stack[0].version(path) + 1, stack[0].revision + 1, 0, edit.write.entry)
    return (Tree(stack[0].scope, head.revision, {**stack[0].heads, path: head}), *stack[1:])


def edit_layer(stack: tuple[Tree, ...], depth: int, path: Path, text: str) -> tuple[Tree, ...]:
    """The layers after an edit of one layer below."""
    other = tree(depth, {path: Entry(blob(text))}, stack[depth].version(path) + 1)
    return (*stack[:depth], other, *stack[depth + 1 :])


def resolved(stack: tuple[Tree, ...], path: Path) -> tuple[Digest, str] | None:
    file = CONTEXT.resolve(path, stack)
    return None if file is None else (file.blob.digest, file.source_label)


def test_a_live_file_is_taken_from_the_nearest_layer_that_has_it() -> None:
    below = layers(SOUL, None, None, "kind")
    assert resolved(below, SOUL) == (blob("kind").digest, FileSource.DEFAULTS)
    assert resolved(layers(SOUL, None, "", "kind"), SOUL) == (
        blob("kind").digest,
        FileSource.DEFAULTS,
    )
    assert resolved(edit_layer(below, 1, SOUL, ""), SOUL) == (blob("").digest, FileSource.TEMPLATE)
    own = apply_edit(
        below,
        agent_writes.plan_agent_put(below, SOUL, NewContent(blob("mine")), CONTEXT, UNCONDITIONAL),
    )
    assert resolved(own, SOUL) == (blob("mine").digest, FileSource.OVERRIDE)


def test_live_files_are_rendered_and_the_agents_pinned_and_managed_files_are_not() -> None:
    pin = Entry(blob("be safe"), blob("be safe"))
    rendered = [
        (SOUL, layers(SOUL, Entry(blob("mine")))),
        (SOUL, layers(SOUL, None, "brisk")),
        (USER, layers(USER, None, "about {{HUMAN_NAME}}")),
    ]
    verbatim = [(RULES, layers(RULES, pin)), (USER, layers(USER, Entry(blob("about Ada"))))]
    for path, stack in rendered:
        file = CONTEXT.resolve(path, stack)
        assert file is not None
        assert file.variables == CONTEXT.variables
        assert CONTEXT.variables.key in file.etag
    for path, stack in verbatim:
        file = CONTEXT.resolve(path, stack)
        assert file is not None
        assert file.variables is None


def test_a_managed_file_is_rendered_from_a_newer_layer_without_a_review() -> None:
    written = Entry(blob("about Ada"), blob("about {{HUMAN_NAME}}"))
    stack = layers(USER, written, None, "about {{HUMAN_NAME}}")
    assert resolved(stack, USER) == (blob("about Ada").digest, FileSource.OVERRIDE)
    for depth, source in ((2, FileSource.DEFAULTS), (1, FileSource.TEMPLATE)):
        newer = edit_layer(stack, depth, USER, "on {{HUMAN_NAME}}")
        file = CONTEXT.resolve(USER, newer)
        assert file is not None
        assert (file.blob, file.source_label) == (blob("on {{HUMAN_NAME}}"), source)
        assert file.variables == CONTEXT.variables
        assert file.available_update is None
        assert CONTEXT.compose(newer).files[USER] == file
        assert (
            f"{source} changed since it was written from the profile"
            in agent_resolution.explain_resolution(USER, newer, file)
        )
    nothing = layers(USER, written)
    assert resolved(nothing, USER) == (blob("about Ada").digest, FileSource.OVERRIDE)


def test_a_pinned_file_that_was_never_reviewed_is_absent() -> None:
    assert resolved(layers(RULES, None, "new rules", "rules"), RULES) is None


texts = st.sampled_from(["a", "b", "c"])
steps = st.lists(st.tuples(st.sampled_from(["template", "defaults", "override", "revert"]), texts))


@given(first=texts, history=steps)
def test_no_edit_below_changes_a_pinned_file(first: str, history: list[tuple[str, str]]) -> None:
    stack = layers(RULES, None, first)
    stack = apply_edit(stack, pins.plan_pin(stack, RULES, FileClass.LIVE))
    pin, content = blob(first), blob(first)
    for action, text in history:
        if action == "override":
            new_content = NewContent(blob(text), accept_template_update=True)
            stack = apply_edit(
                stack,
                agent_writes.plan_agent_put(stack, RULES, new_content, CONTEXT, UNCONDITIONAL),
            )
            content = blob(text)
        elif action == "revert":
            if content == pin:
                with pytest.raises(NotFound):
                    agent_writes.plan_agent_delete(stack, RULES, CONTEXT, UNCONDITIONAL)
                continue
            stack = apply_edit(
                stack, agent_writes.plan_agent_delete(stack, RULES, CONTEXT, UNCONDITIONAL)
            )
            content = pin
        else:
            stack = edit_layer(stack, 1 if action == "template" else 2, RULES, text)
        file = CONTEXT.resolve(RULES, stack)
        assert file is not None
        assert file.blob == content
        assert file.source_label == (
            FileSource.PIN if content == pin else FileSource.PINNED_OVERRIDE
        )
        status = pins.pin_status(RULES, stack)
        assert status.pinned == pin
        assert status.update_available == (status.latest != pin)


@given(first=texts, later=texts, mine=texts, reviewed=texts)
def test_accepting_takes_exactly_the_reviewed_version(
    first: str, later: str, mine: str, reviewed: str
) -> None:
    stack = layers(RULES, Entry(blob(mine), blob(first)), later)
    if reviewed != later:
        with pytest.raises(WorkspaceConflict, match="review it again"):
            pins.plan_accept(stack, RULES, blob(reviewed).digest)
        return
    after = apply_edit(stack, pins.plan_accept(stack, RULES, blob(reviewed).digest))
    assert resolved(after, RULES) == (blob(later).digest, FileSource.PIN)
    assert not pins.pin_status(RULES, after).update_available
    assert pins.plan_accept(after, RULES, blob(reviewed).digest) is None


def test_a_file_added_below_later_is_offered_and_appears_after_an_accept() -> None:
    stack = layers(RULES, None, "new rules")
    assert pins.pin_status(RULES, stack).update_available
    after = apply_edit(stack, pins.plan_accept(stack, RULES, blob("new rules").digest))
    assert resolved(after, RULES) == (blob("new rules").digest, FileSource.PIN)
    with pytest.raises(NotFound):
        pins.plan_accept(layers(RULES), RULES, blob("x").digest)


def test_overriding_a_pinned_file_needs_consent_and_a_managed_file_is_never_written() -> None:
    stack = layers(RULES, Entry(blob("a"), blob("a")), "a")
    with pytest.raises(Forbidden, match="pinned"):
        agent_writes.plan_agent_put(stack, RULES, NewContent(blob("b")), CONTEXT, UNCONDITIONAL)
    for accepted in (False, True):
        new_content = NewContent(blob("b"), accept_template_update=accepted)
        with pytest.raises(Forbidden, match="managed"):
            agent_writes.plan_agent_put(
                layers(USER, None, "x"), USER, new_content, CONTEXT, UNCONDITIONAL
            )
    with pytest.raises(Forbidden, match="managed"):
        agent_writes.plan_agent_delete(layers(USER, Entry(blob("b"))), USER, CONTEXT, UNCONDITIONAL)


def test_a_put_of_the_inherited_content_creates_no_override() -> None:
    stack = layers(SOUL, None, "brisk")
    assert (
        agent_writes.plan_agent_put(stack, SOUL, NewContent(blob("brisk")), CONTEXT, UNCONDITIONAL)
        is None
    )
    own = layers(SOUL, Entry(blob("mine"), blob("brisk")), "brisk")
    back = apply_edit(
        own,
        agent_writes.plan_agent_put(own, SOUL, NewContent(blob("brisk")), CONTEXT, UNCONDITIONAL),
    )
    assert resolved(back, SOUL) == (blob("brisk").digest, FileSource.TEMPLATE)


def test_a_stale_etag_conflicts_after_any_change() -> None:
    stack = layers(SOUL, None, "brisk")
    file = CONTEXT.resolve(SOUL, stack)
    assert file is not None
    condition = WriteCondition(frozenset({file.etag}))
    renamed = AgentFileResolver(CONTEXT.classes, PlaceholderValues(agent_name="Polo"))
    new_content = NewContent(blob("mine"))
    assert agent_writes.plan_agent_put(stack, SOUL, new_content, CONTEXT, condition) is not None
    for resolver, changed in (
        (renamed, stack),
        (CONTEXT, edit_layer(stack, 1, SOUL, "brisker")),
    ):
        with pytest.raises(WorkspaceConflict):
            agent_writes.plan_agent_put(changed, SOUL, new_content, resolver, condition)


def test_becoming_pinned_does_not_change_the_served_content() -> None:
    for own in (None, Entry(blob("mine"), blob("older"))):
        stack = layers(SOUL, own, "brisk")
        before = CONTEXT.resolve(SOUL, stack)
        pinning_context = AgentFileResolver(
            FileClassRules((ClassRule("SOUL.md", FileClass.PINNED),)), CONTEXT.variables
        )
        after = apply_edit(stack, pins.plan_pin(stack, SOUL, FileClass.LIVE))
        file = pinning_context.resolve(SOUL, after)
        assert before is not None
        assert file is not None
        assert file.blob == before.blob
        assert not pins.pin_status(SOUL, after).update_available
        assert pins.plan_pin(after, SOUL, FileClass.LIVE) is None


@pytest.mark.parametrize("upstream", ["brisk", "older", None])
@pytest.mark.parametrize("own", [None, "mine", "older", "brisk"])
@pytest.mark.parametrize("base", ["brisk", "older", None])
@pytest.mark.parametrize("file_class", [FileClass.LIVE, FileClass.MANAGED])
def test_a_file_of_any_class_is_served_as_before_when_it_becomes_pinned(
    file_class: FileClass, base: str | None, own: str | None, upstream: str | None
) -> None:
    entry = Entry(blob(own), blob(base) if base else None) if own else None
    stack = layers(SOUL, entry, upstream)
    before = agent_resolution.resolve_as(file_class, SOUL, stack)
    pinned = apply_edit(stack, pins.plan_pin(stack, SOUL, file_class))
    after = agent_resolution.resolve_as(FileClass.PINNED, SOUL, pinned)
    assert (after and after.blob) == (before and before.blob)


def test_a_render_context_round_trips_through_run_variables() -> None:
    rules = tuple(ClassRule(f"r{n}/**", FileClass.PINNED) for n in range(12))
    resolver = AgentFileResolver(
        FileClassRules(rules), PlaceholderValues(agent_name="Marco", human_email="ada@example.org")
    )
    assert AgentFileResolver.from_run_variables(resolver.to_run_variables()) == resolver
    assert (
        AgentFileResolver.from_run_variables(
            {**resolver.to_run_variables(), "NAME": "a caller's own"}
        )
        == resolver
    )
