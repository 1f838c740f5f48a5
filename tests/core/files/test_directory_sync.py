"""Directory sync converges, whichever side is edited, and loses no text."""

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
REMOTE_FILES = st.none() | st.builds(RemoteFile, DIGESTS, st.booleans(), st.booleans())
LAST_SYNCED = st.none() | st.builds(
    LastSynced, st.none() | DIGESTS, DIGESTS, st.booleans(), st.none() | st.just("copy")
)
SECRET = "secret "


def stored(text: str) -> str:
    return text.replace(SECRET, "[redacted] ")


class OnePathMachine(RuleBasedStateMachine):
    """One path edited on both sides, with a sync between them that may be killed.

    A text stands for its own digest. Every edit is a text that was never written before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.local: str | None = None
        self.copies: dict[str, str] = {}
        self.last_synced: LastSynced | None = None
        self.own: str | None = None
        self.inherited: str | None = None
        self.pinned = False
        self.count = 0
        self.history: set[str] = set()
        """Every text that the server has ever stored."""
        self.typed: set[str] = set()
        """Texts written locally and not withdrawn locally."""
        self.visible: set[str] = set()
        """Texts that were readable in the directory."""

    # Edits.

    def fresh(self, start: str = "text ") -> str:
        self.count += 1
        return f"{start}{self.count}"

    @initialize(inherited=st.booleans())
    def start(self, inherited: bool) -> None:
        if inherited:
            self.inherit()

    @rule(start=st.sampled_from(["text ", SECRET]))
    def edit_local(self, start: str) -> None:
        self.typed.discard(self.local or "")
        self.local = self.fresh(start)
        self.typed.add(self.local)

    @rule()
    def copy_inherited(self) -> None:
        if self.inherited is not None:
            self.typed.discard(self.local or "")
            self.local = self.inherited

    @precondition(lambda self: self.local is not None)
    @rule()
    def delete_local(self) -> None:
        self.typed.discard(self.local or "")
        self.local = None

    @rule()
    def edit_remote(self) -> None:
        self.own = self.fresh()
        self.history.add(self.own)

    @precondition(lambda self: self.own is not None)
    @rule()
    def revert_remote(self) -> None:
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
        self.pinned = not self.pinned

    @precondition(lambda self: self.copies)
    @rule(index=st.integers(0, 9))
    def delete_copy(self, index: int) -> None:
        """A person has read a copy and deletes it."""
        name = sorted(self.copies)[index % len(self.copies)]
        self.typed.discard(self.copies.pop(name))

    @precondition(lambda self: self.copies)
    @rule(index=st.integers(0, 9))
    def edit_copy(self, index: int) -> None:
        name = sorted(self.copies)[index % len(self.copies)]
        self.typed.discard(self.copies[name])
        self.copies[name] = self.fresh()
        self.typed.add(self.copies[name])

    # The sync.

    def remote_file(self) -> RemoteFile | None:
        digest = self.inherited if self.own is None else self.own
        own = self.own is not None or self.pinned
        return None if digest is None else RemoteFile(digest, own, self.pinned)

    def decide(self) -> SyncAction:
        copy = self.last_synced.copy if self.last_synced else None
        return decide_action(
            self.last_synced, self.local, self.remote_file(), copy_exists=copy in self.copies
        )

    @rule(killed=st.booleans())
    def sync(self, killed: bool) -> None:
        record = self.carry_out(self.decide())
        if not killed:
            self.last_synced = record

    def carry_out(self, step: SyncAction) -> LastSynced | None:
        remote, previous = self.remote_file(), self.last_synced
        if step in {SyncAction.NOTHING, SyncAction.AWAIT_RESOLUTION}:
            return previous
        if step is SyncAction.START_CONFLICT:
            assert remote is not None
            record: LastSynced | None = LastSynced(
                None, remote.digest, copy=self.write_copy(remote.digest)
            )
        else:
            record = self.apply(step, remote)
        old = (
            previous.copy
            if previous and previous.copy != (record.copy if record else None)
            else None
        )
        if previous and old and self.copies.get(old) == previous.there:
            del self.copies[old]
        return record

    def apply(self, step: SyncAction, remote: RemoteFile | None) -> LastSynced | None:
        match step:
            case SyncAction.UPLOAD:
                return self.put()
            case SyncAction.DELETE_REMOTE:
                assert self.own in self.visible
                self.own = None
                return None
            case SyncAction.DELETE_LOCAL:
                self.local = None
                return None
            case SyncAction.MOVE_LOCAL_ASIDE:
                assert self.local is not None
                self.write_copy(self.local)
                self.local = remote.digest if remote and remote.is_own else None
            case SyncAction.DOWNLOAD:
                assert remote is not None
                self.local = remote.digest
            case _:
                assert step in {SyncAction.RECORD_SYNCED, SyncAction.DROP_RECORD}
        if (
            remote is None
            or (not remote.is_own and self.local is None)
            or step is SyncAction.DROP_RECORD
        ):
            return None
        return LastSynced(self.local, remote.digest, remote.is_own)

    def put(self) -> LastSynced | None:
        assert self.local is not None
        if self.pinned:  # Never reviewed, so there is no content: the server refuses the write.
            return self.last_synced
        assert self.own is None or self.own in self.visible, "an unread text was overwritten"
        content = stored(self.local)
        self.history.add(content)
        self.own = None if content == self.inherited else content
        return LastSynced(self.local, content, self.own is not None)

    def write_copy(self, text: str) -> str:
        name = text
        while self.copies.get(name, text) != text:  # That copy was edited.
            name += "'"
        self.copies[name] = text
        return name

    @invariant()
    def no_text_is_lost(self) -> None:
        self.visible |= {self.local or "", stored(self.local or ""), *self.copies.values()}
        assert self.typed <= {self.local, *self.copies.values()} | self.history

    @invariant()
    def repeated_syncs_converge(self) -> None:
        before = dict(vars(self)), dict(self.copies), set(self.history)
        for _ in range(2):
            self.last_synced = self.carry_out(self.decide())
        step = self.decide()
        remote = self.remote_file()
        if self.pinned and remote is None:
            assert step in {SyncAction.UPLOAD, SyncAction.NOTHING, SyncAction.DROP_RECORD}
        else:
            assert step in {SyncAction.NOTHING, SyncAction.AWAIT_RESOLUTION}
        if step is SyncAction.NOTHING and self.local is not None and remote is not None:
            assert stored(self.local) == remote.digest
        if step is SyncAction.NOTHING and self.local is None:
            assert remote is None or not remote.is_own
        vars(self).update(before[0])
        self.copies, self.history = before[1], before[2]


TestOnePath = OnePathMachine.TestCase
TestOnePath.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@given(LAST_SYNCED, st.none() | DIGESTS, REMOTE_FILES, st.booleans())
def test_every_state_has_a_valid_action(
    last_synced: Any, local: Any, remote: Any, copy: bool
) -> None:
    step = decide_action(last_synced, local, remote, copy_exists=copy)
    if step in {
        SyncAction.UPLOAD,
        SyncAction.DELETE_LOCAL,
        SyncAction.MOVE_LOCAL_ASIDE,
        SyncAction.START_CONFLICT,
        SyncAction.AWAIT_RESOLUTION,
    }:
        assert local is not None
    if step in {
        SyncAction.DOWNLOAD,
        SyncAction.DELETE_REMOTE,
        SyncAction.START_CONFLICT,
        SyncAction.AWAIT_RESOLUTION,
    }:
        assert (remote is not None and remote.is_own) or last_synced is not None
    if step is SyncAction.UPLOAD:
        assert remote is None or not remote.read_only
    if step is SyncAction.DELETE_REMOTE:
        assert remote == RemoteFile(last_synced.there)


@given(LAST_SYNCED, st.none() | DIGESTS, REMOTE_FILES, st.booleans())
def test_equal_sides_are_only_recorded_as_synced(
    last_synced: Any, local: Any, remote: Any, copy: bool
) -> None:
    if local is not None and remote is not None and local == remote.digest:
        assert decide_action(last_synced, local, remote, copy_exists=copy) in {
            SyncAction.RECORD_SYNCED,
            SyncAction.NOTHING,
        }


def test_a_change_on_one_side_is_copied_to_the_other() -> None:
    last_synced = LastSynced("a", "a")
    assert decide_action(last_synced, "b", RemoteFile("a")) is SyncAction.UPLOAD
    assert decide_action(last_synced, "a", RemoteFile("b")) is SyncAction.DOWNLOAD
    assert decide_action(last_synced, None, RemoteFile("a")) is SyncAction.DELETE_REMOTE
    assert decide_action(last_synced, "a", None) is SyncAction.DELETE_LOCAL
    assert decide_action(None, "a", None) is SyncAction.UPLOAD
    assert decide_action(None, None, RemoteFile("a")) is SyncAction.DOWNLOAD
    assert decide_action(last_synced, "b", RemoteFile("c")) is SyncAction.START_CONFLICT


def test_a_change_wins_over_a_deletion() -> None:
    last_synced = LastSynced("a", "a")
    assert decide_action(last_synced, "b", None) is SyncAction.UPLOAD
    assert decide_action(last_synced, "b", RemoteFile("x", is_own=False)) is SyncAction.UPLOAD
    assert decide_action(last_synced, None, RemoteFile("b")) is SyncAction.DOWNLOAD


def test_inherited_files_are_not_downloaded_and_reverted_files_are_deleted() -> None:
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


def test_pinned_files_are_downloaded_and_a_local_edit_is_moved_aside() -> None:
    pinned = RemoteFile("p", read_only=True)
    assert decide_action(None, None, pinned) is SyncAction.DOWNLOAD
    assert decide_action(LastSynced("p", "p"), None, pinned) is SyncAction.DOWNLOAD
    assert decide_action(LastSynced("p", "p"), "mine", pinned) is SyncAction.MOVE_LOCAL_ASIDE
    assert decide_action(None, "mine", pinned) is SyncAction.MOVE_LOCAL_ASIDE
    assert decide_action(LastSynced("o", "o"), "o", pinned) is SyncAction.DOWNLOAD


def test_a_text_redacted_by_the_server_stays_local_and_is_never_overwritten() -> None:
    last_synced = LastSynced("with", "without")
    assert decide_action(last_synced, "with", RemoteFile("without")) is SyncAction.NOTHING
    assert decide_action(last_synced, "with", RemoteFile("edited")) is SyncAction.START_CONFLICT
    assert decide_action(last_synced, "with", None) is SyncAction.MOVE_LOCAL_ASIDE


def test_deleting_the_conflict_copy_resolves_the_conflict() -> None:
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


def test_hidden_and_temporary_files_are_ignored() -> None:
    digest = "0123456789abcdef" * 4
    for path in (".git/config", "a/.x.md", "a.md~", ".a.md.swp", "4913", "#a.md#", "a.tmp", "~$a"):
        assert is_ignored(path), path
    for path in ("a.md", "notes/a.md", "a.conflict.md", "conflict-12345678", "a#b"):
        assert not is_ignored(path), path
    for path in ("a.md", "notes/b", "a.b/c.d.e", "conflict", ".x"):
        assert all(map(is_ignored, conflict_copy_names(path, digest))), path
    assert next(iter(conflict_copy_names("a/b.md", digest))) == "a/b.conflict-01234567.md"


def test_of_colliding_paths_the_already_synced_path_wins() -> None:
    assert colliding_paths(["a.md", "A.md", "b.md"], ()) == {"a.md": "A.md"}
    assert colliding_paths(["a.md", "A.md"], {"a.md"}) == {"A.md": "a.md"}
    assert colliding_paths(["ﬁ", "fi", "x/FI"], ()) == {"ﬁ": "fi"}
