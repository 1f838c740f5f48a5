"""A directory and the server come to say the same, whoever edits what, and no text is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from carrel.core.files.directory_sync import (
    LastSynced,
    RemoteFile,
    SyncAction,
    colliding_paths,
    conflict_copy_names,
    decide_action,
    is_ignored,
)

DIGESTS = st.sampled_from(["a", "b", "c"])
THERES = st.none() | st.builds(RemoteFile, DIGESTS, st.booleans(), st.booleans())
KNOWNS = st.none() | st.builds(
    LastSynced, st.none() | DIGESTS, DIGESTS, st.booleans(), st.none() | st.just("copy")
)
SECRET = "secret "


def stored(text: str) -> str:
    return text.replace(SECRET, "[redacted] ")


class OnePath(RuleBasedStateMachine):
    """Two people, one at each side of a path, and a sync between them that may be killed.

    A text stands for its own digest. Every edit is a text that nobody has written before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.here: str | None = None
        self.copies: dict[str, str] = {}
        self.known: LastSynced | None = None
        self.own: str | None = None
        self.inherited: str | None = None
        self.held = False
        self.count = 0
        self.history: set[str] = set()
        """All that the server has ever had."""
        self.typed: set[str] = set()
        """What was written here and not taken back here."""
        self.shown: set[str] = set()
        """What somebody in the directory had in front of them."""

    # The people.

    def fresh(self, start: str = "text ") -> str:
        self.count += 1
        return f"{start}{self.count}"

    @initialize(inherited=st.booleans())
    def begin(self, inherited: bool) -> None:
        if inherited:
            self.inherit()

    @rule(start=st.sampled_from(["text ", SECRET]))
    def edit_here(self, start: str) -> None:
        self.typed.discard(self.here or "")
        self.here = self.fresh(start)
        self.typed.add(self.here)

    @rule()
    def take_what_is_inherited(self) -> None:
        if self.inherited is not None:
            self.typed.discard(self.here or "")
            self.here = self.inherited

    @precondition(lambda self: self.here is not None)
    @rule()
    def delete_here(self) -> None:
        self.typed.discard(self.here or "")
        self.here = None

    @rule()
    def edit_there(self) -> None:
        self.own = self.fresh()
        self.history.add(self.own)

    @precondition(lambda self: self.own is not None)
    @rule()
    def revert_there(self) -> None:
        self.own = None

    @rule()
    def inherit(self) -> None:
        self.inherited = self.fresh("inherited ")
        self.history.add(self.inherited)

    @rule()
    def inherit_nothing(self) -> None:
        self.inherited = None

    @rule()
    def pin_or_unpin(self) -> None:
        self.held = not self.held

    @precondition(lambda self: self.copies)
    @rule(which=st.integers(0, 9))
    def choose(self, which: int) -> None:
        """A person who has read a copy takes it away."""
        name = sorted(self.copies)[which % len(self.copies)]
        self.typed.discard(self.copies.pop(name))

    @precondition(lambda self: self.copies)
    @rule(which=st.integers(0, 9))
    def work_in_a_copy(self, which: int) -> None:
        name = sorted(self.copies)[which % len(self.copies)]
        self.typed.discard(self.copies[name])
        self.copies[name] = self.fresh()
        self.typed.add(self.copies[name])

    # The sync.

    def there(self) -> RemoteFile | None:
        shown = self.inherited if self.own is None else self.own
        own = self.own is not None or self.held
        return None if shown is None else RemoteFile(shown, own, self.held)

    def decided(self) -> SyncAction:
        copy = self.known.copy if self.known else None
        return decide_action(self.known, self.here, self.there(), copy_exists=copy in self.copies)

    @rule(killed=st.booleans())
    def sync(self, killed: bool) -> None:
        note = self.done(self.decided())
        if not killed:
            self.known = note

    def done(self, step: SyncAction) -> LastSynced | None:
        there, was = self.there(), self.known
        if step in {SyncAction.NOTHING, SyncAction.AWAIT_RESOLUTION}:
            return was
        if step is SyncAction.START_CONFLICT:
            assert there is not None
            note: LastSynced | None = LastSynced(None, there.digest, copy=self.kept(there.digest))
        else:
            note = self.carried_out(step, there)
        old = was.copy if was and was.copy != (note.copy if note else None) else None
        if was and old and self.copies.get(old) == was.there:
            del self.copies[old]
        return note

    def carried_out(self, step: SyncAction, there: RemoteFile | None) -> LastSynced | None:
        match step:
            case SyncAction.UPLOAD:
                return self.put()
            case SyncAction.DELETE_REMOTE:
                assert self.own in self.shown
                self.own = None
                return None
            case SyncAction.DELETE_LOCAL:
                self.here = None
                return None
            case SyncAction.MOVE_LOCAL_ASIDE:
                assert self.here is not None
                self.kept(self.here)
                self.here = there.digest if there and there.is_own else None
            case SyncAction.DOWNLOAD:
                assert there is not None
                self.here = there.digest
            case _:
                assert step in {SyncAction.RECORD_SYNCED, SyncAction.DROP_RECORD}
        if (
            there is None
            or (not there.is_own and self.here is None)
            or step is SyncAction.DROP_RECORD
        ):
            return None
        return LastSynced(self.here, there.digest, there.is_own)

    def put(self) -> LastSynced | None:
        assert self.here is not None
        if self.held:  # Never reviewed, so that nothing shows: the server says no.
            return self.known
        assert self.own is None or self.own in self.shown, "somebody's text was written over"
        kept = stored(self.here)
        self.history.add(kept)
        self.own = None if kept == self.inherited else kept
        return LastSynced(self.here, kept, self.own is not None)

    def kept(self, text: str) -> str:
        name = text
        while self.copies.get(name, text) != text:  # Somebody has worked in that one.
            name += "'"
        self.copies[name] = text
        return name

    @invariant()
    def nothing_is_lost(self) -> None:
        self.shown |= {self.here or "", stored(self.here or ""), *self.copies.values()}
        assert self.typed <= {self.here, *self.copies.values()} | self.history

    @invariant()
    def it_comes_to_rest(self) -> None:
        before = dict(vars(self)), dict(self.copies), set(self.history)
        for _ in range(2):
            self.known = self.done(self.decided())
        step = self.decided()
        there = self.there()
        if self.held and there is None:
            assert step in {SyncAction.UPLOAD, SyncAction.NOTHING, SyncAction.DROP_RECORD}
        else:
            assert step in {SyncAction.NOTHING, SyncAction.AWAIT_RESOLUTION}
        if step is SyncAction.NOTHING and self.here is not None and there is not None:
            assert stored(self.here) == there.digest
        if step is SyncAction.NOTHING and self.here is None:
            assert there is None or not there.is_own
        vars(self).update(before[0])
        self.copies, self.history = before[1], before[2]


TestOnePath = OnePath.TestCase
TestOnePath.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)


@given(KNOWNS, st.none() | DIGESTS, THERES, st.booleans())
def test_there_is_an_answer_to_everything(known: Any, here: Any, there: Any, copy: bool) -> None:
    step = decide_action(known, here, there, copy_exists=copy)
    if step in {
        SyncAction.UPLOAD,
        SyncAction.DELETE_LOCAL,
        SyncAction.MOVE_LOCAL_ASIDE,
        SyncAction.START_CONFLICT,
        SyncAction.AWAIT_RESOLUTION,
    }:
        assert here is not None
    if step in {
        SyncAction.DOWNLOAD,
        SyncAction.DELETE_REMOTE,
        SyncAction.START_CONFLICT,
        SyncAction.AWAIT_RESOLUTION,
    }:
        assert (there is not None and there.is_own) or known is not None
    if step is SyncAction.UPLOAD:
        assert there is None or not there.read_only
    if step is SyncAction.DELETE_REMOTE:
        assert there == RemoteFile(known.there)


@given(KNOWNS, st.none() | DIGESTS, THERES, st.booleans())
def test_what_is_the_same_on_both_sides_is_left_alone(
    known: Any, here: Any, there: Any, copy: bool
) -> None:
    if here is not None and there is not None and here == there.digest:
        assert decide_action(known, here, there, copy_exists=copy) in {
            SyncAction.RECORD_SYNCED,
            SyncAction.NOTHING,
        }


def test_what_changed_only_on_one_side_goes_to_the_other() -> None:
    known = LastSynced("a", "a")
    assert decide_action(known, "b", RemoteFile("a")) is SyncAction.UPLOAD
    assert decide_action(known, "a", RemoteFile("b")) is SyncAction.DOWNLOAD
    assert decide_action(known, None, RemoteFile("a")) is SyncAction.DELETE_REMOTE
    assert decide_action(known, "a", None) is SyncAction.DELETE_LOCAL
    assert decide_action(None, "a", None) is SyncAction.UPLOAD
    assert decide_action(None, None, RemoteFile("a")) is SyncAction.DOWNLOAD
    assert decide_action(known, "b", RemoteFile("c")) is SyncAction.START_CONFLICT


def test_a_change_beats_a_removal() -> None:
    known = LastSynced("a", "a")
    assert decide_action(known, "b", None) is SyncAction.UPLOAD
    assert decide_action(known, "b", RemoteFile("x", is_own=False)) is SyncAction.UPLOAD
    assert decide_action(known, None, RemoteFile("b")) is SyncAction.DOWNLOAD


def test_what_is_inherited_is_not_brought_and_what_was_reverted_is_taken_away() -> None:
    assert decide_action(None, None, RemoteFile("x", is_own=False)) is SyncAction.NOTHING
    assert (
        decide_action(LastSynced("a", "a"), "a", RemoteFile("x", is_own=False))
        is SyncAction.DELETE_LOCAL
    )
    assert decide_action(None, "x", RemoteFile("x", is_own=False)) is SyncAction.RECORD_SYNCED
    assert (
        decide_action(LastSynced("x", "x", own=False), "x", RemoteFile("y", is_own=False))
        is SyncAction.DOWNLOAD
    )


def test_held_files_come_down_and_an_edit_of_them_is_set_aside() -> None:
    pinned = RemoteFile("p", read_only=True)
    assert decide_action(None, None, pinned) is SyncAction.DOWNLOAD
    assert decide_action(LastSynced("p", "p"), None, pinned) is SyncAction.DOWNLOAD
    assert decide_action(LastSynced("p", "p"), "mine", pinned) is SyncAction.MOVE_LOCAL_ASIDE
    assert decide_action(None, "mine", pinned) is SyncAction.MOVE_LOCAL_ASIDE
    assert decide_action(LastSynced("o", "o"), "o", pinned) is SyncAction.DOWNLOAD


def test_a_text_whose_secret_the_server_took_out_stays_here_and_is_never_written_over() -> None:
    known = LastSynced("with", "without")
    assert decide_action(known, "with", RemoteFile("without")) is SyncAction.NOTHING
    assert decide_action(known, "with", RemoteFile("edited")) is SyncAction.START_CONFLICT
    assert decide_action(known, "with", None) is SyncAction.MOVE_LOCAL_ASIDE


def test_a_person_chooses_by_taking_the_copy_away() -> None:
    waiting = LastSynced(None, "theirs", copy="copy")
    assert (
        decide_action(waiting, "mine", RemoteFile("theirs"), copy_exists=True)
        is SyncAction.AWAIT_RESOLUTION
    )
    assert decide_action(waiting, "mine", RemoteFile("theirs")) is SyncAction.UPLOAD
    assert decide_action(waiting, "theirs", RemoteFile("theirs")) is SyncAction.RECORD_SYNCED
    assert (
        decide_action(waiting, None, RemoteFile("theirs"), copy_exists=True) is SyncAction.DOWNLOAD
    )
    assert decide_action(waiting, None, RemoteFile("theirs")) is SyncAction.DELETE_REMOTE
    assert (
        decide_action(waiting, "mine", RemoteFile("newer"), copy_exists=True)
        is SyncAction.START_CONFLICT
    )
    assert decide_action(waiting, "mine", RemoteFile("newer")) is SyncAction.START_CONFLICT


def test_what_is_hidden_or_in_the_making_is_passed_over() -> None:
    digest = "0123456789abcdef" * 4
    for path in (".git/config", "a/.x.md", "a.md~", ".a.md.swp", "4913", "#a.md#", "a.tmp", "~$a"):
        assert is_ignored(path), path
    for path in ("a.md", "notes/a.md", "a.conflict.md", "conflict-12345678", "a#b"):
        assert not is_ignored(path), path
    for path in ("a.md", "notes/b", "a.b/c.d.e", "conflict", ".x"):
        assert all(map(is_ignored, conflict_copy_names(path, digest))), path
    assert next(iter(conflict_copy_names("a/b.md", digest))) == "a/b.conflict-01234567.md"


def test_of_paths_that_some_disks_take_for_one_the_known_one_goes_first() -> None:
    assert colliding_paths(["a.md", "A.md", "b.md"], ()) == {"a.md": "A.md"}
    assert colliding_paths(["a.md", "A.md"], {"a.md"}) == {"A.md": "a.md"}
    assert colliding_paths(["ﬁ", "fi", "x/FI"], ()) == {"ﬁ": "fi"}
