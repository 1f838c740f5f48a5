"""What we ask of the world: whatever touches a disk, a network or a clock is behind these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from carrel.core.identifiers import Digest, Path, Scope, TimestampMs
from carrel.core.revision_cache import RevisionCache
from carrel.core.runs import Run, SnapshotLayer
from carrel.core.store.event import Event, EventFilter
from carrel.core.store.idempotency import Claim, StoredResponse
from carrel.core.store.record import AuditEntry, Record, RecordType
from carrel.core.store.tree import Blob, Commit, IdempotencyKey, Outcome, Tree, Version
from carrel.core.webhooks import Delivery, DeliveryAttempt, PostResult
from carrel.ports.approvals import ApprovalSettings as ApprovalSettings
from carrel.ports.embeddings import IndexedTexts as IndexedTexts
from carrel.ports.embeddings import SemanticIndex as SemanticIndex
from carrel.ports.git import Repositories as Repositories
from carrel.ports.git import Repository as Repository
from carrel.ports.maintenance import StoreMaintenance as StoreMaintenance
from carrel.ports.maintenance import StoreSnapshot as StoreSnapshot
from carrel.ports.recalls import RecallLog as RecallLog
from carrel.ports.sandbox import Sandbox as Sandbox
from carrel.ports.sessions import Sessions as Sessions
from carrel.ports.sessions import TranscriptMirror as TranscriptMirror


class CorruptContent(Exception):
    """Stored bytes are gone, or are not what their digest says. Never served, never hidden."""


class Trees(Protocol):
    """Remembers what each scope says, and lets it change only as a whole."""

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        """Return one tree per layer, in order, all as of one moment; an unknown scope is empty.

        A Scope is read as it is now, a Layer as it was at its revision. With ``paths`` only those
        are looked up, tombstones included; without, every live path that starts with ``prefix``.
        A Layer that no kept run holds may have lost versions to pruning.
        """

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        """Return each scope's revision, 0 for an unknown one."""

    async def versions(self, asks: Sequence[tuple[Scope, Path, int]]) -> tuple[Version | None, ...]:
        """Return each version by its number, None where it never was or has been pruned."""

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        """Return the versions of a path, newest first, tombstones included."""

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        """Return what a scope said past a (revision, path, version), in that order.

        Tombstones are included, and versions that were pruned are not.
        """

    async def complete_since(self, scope: Scope) -> int:
        """The revision from which on nothing that a scope said has been pruned.

        0 where nothing ever was. At this revision and all later ones its tree is known.
        """

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        """Try each commit: applied whole if all it expects still holds, else not at all.

        Nor is it where a new path finds no room or a scope would be too full.

        One answer per commit, in order; one refusal does not stop the others. Once this returns,
        what was applied survives the death of the process and of the machine. Every write adds a
        version and an event ``workspace.updated`` in the same transaction, where ``tells`` are told
        as well, and prunes what
        ``keep`` no longer covers and no kept run can see, nothing of an agent whose config enables
        git: its history is kept whole. Later commits of one call see earlier
        ones. Raises whatever the store raises; then none of this call was applied.
        """


class Blobs(Protocol):
    """Keeps bytes by their digest. Bytes never change, so putting twice is putting once."""

    @property
    def inline(self) -> int:
        """Bytes up to which a content is stored by the commit that refers to it and not before."""

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        """Take bytes into care, in order; durable no later than a commit that refers to them."""

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        """Return every one asked for, its digest checked. Raises Corrupt."""


class LargeBlobStore(Protocol):
    """A place for large bytes outside the database, by digest.

    Nothing is forgotten at once: bytes that nobody seems to want go to the trash, from which they
    can still be read and come back. So a writer that found them here a moment before still has
    them, if it commits before the trash is emptied of what has lain there for a grace period.
    """

    async def put(self, digest: Digest, content: bytes) -> None:
        """Keep these bytes durably; what is there already only becomes young again.

        What is only in the trash is kept anew.
        """

    async def get(self, digest: Digest) -> bytes | None:
        """Return the bytes as they are stored, unchecked, from the trash too, or None."""

    async def discard(self, digests: Collection[Digest]) -> None:
        """Move these to the trash; an absent one is no error."""

    async def restore(self, digests: Collection[Digest]) -> None:
        """Bring these back from the trash, which may go on holding a copy; absent is no error."""

    async def delete(self, digests: Collection[Digest]) -> None:
        """Forget these if they are in the trash; what is not stays, and absent is no error."""

    def trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        """Everything in the trash with when it was discarded last."""

    def each(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        """Everything else, with its size and when it was last put or brought back."""


class ObjectStore(Protocol):
    """A place outside, where bytes stand under keys for others to read: a directory, a bucket.

    Every verb raises OSError where the place does not do its part.
    """

    @property
    def forbids_nested_keys(self) -> bool:
        """Whether a key cannot be held while another key lies beneath it."""

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        """Keep each under its key, over what was there; a reader sees the old or the new.

        Returns the keys that this place cannot hold, each with the reason.
        """

    async def get(self, key: str) -> bytes | None: ...

    async def delete(self, keys: Collection[str]) -> None:
        """Forget these; an absent one is no error."""

    def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        """Every key that begins with ``prefix``, which is empty or ends with a slash.

        With the digest of what stands there; None where that was not put here.
        """


class LeaderLock(Protocol):
    """Lets one process of many do a work that two would only do twice."""

    async def try_acquire(self) -> bool:
        """Whether it is this one's turn: nobody else had it, or it has it still.

        Whoever dies gives it back. Raises what the store raises.
        """

    async def release(self) -> None:
        """Let another have it; without having had it no error."""


class Records(Protocol):
    """The facts beside the files. They change only inside Trees.commit."""

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        """Return each record of this tenant and noun by id."""

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        """Return each record by one of its handles, whatever its tenant."""

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        link: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return records in order of id, those past ``after``, with this link where one is given.

        An empty tenant lists those of all tenants: for upkeep, never for a caller.
        """

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        """How many records of this tenant and noun have each of these links."""

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        link: str,
        words: Sequence[str],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return records with this link in whose text some word begins with one of these.

        Most of them first, then most whole words, then the greatest id. Words: ``core.search``.
        """

    async def collection_revisions(self, asks: Sequence[tuple[str, RecordType]]) -> tuple[int, ...]:
        """Return the revision of each (tenant, noun), 0 where nothing ever was."""

    async def revision(self) -> int:
        """A number that rises with any change of a record that is not QUIET: for keys of caches."""

    async def mark_used(self, marks: Mapping[str, TimestampMs]) -> None:
        """Note when each id was last used; an earlier moment never replaces a later one."""

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]: ...

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        """Return what was done to this tenant's records, newest first, those before a deed's id."""


class Runs(Protocol):
    """Runs and the snapshots they hold."""

    async def start(
        self, runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]
    ) -> tuple[Run, ...]:
        """Record each run with its layers frozen: a Scope at its revision of this very moment.

        The cost does not depend on the number of files. An event ``run.started`` is logged.
        """

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]: ...

    async def list(
        self, tenant: str, *, scope: Scope | None = None, before: str = "", limit: int = 100
    ) -> tuple[Run, ...]:
        """Return runs newest first (by id, descending), those before ``before`` where given."""

    async def newest(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        """Return the run of each scope that began last (by id), None where it has none."""

    async def change(self, run: Run, was: Run) -> bool:
        """Store status, ended and kept if the run still is as it was; False if it is not.

        An event is logged when the status changes. Letting go of a run drops its snapshot.
        """


class Events(Protocol):
    """The log of what happened, written in the transaction that made it happen."""

    async def after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        """Return events past a cursor (None: from the beginning), oldest first.

        None is ever missed: an event that becomes visible later has a later cursor. Without a
        filter, those of all tenants: for delivery, never for a caller. Raises Malformed for what
        is not a cursor.
        """

    async def latest(self) -> str:
        """A cursor past everything that can be seen now."""

    async def wait_for_new(self, seconds: float) -> bool:
        """Return soon after new events may be there (True), or when the time is over (False).

        Writes of other processes wake too.
        """


class IdempotencyStore(Protocol):
    """Answers given to requests that carried an Idempotency-Key."""

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale: TimestampMs
    ) -> Claim:
        """Take the key for this request, or say what is known of the one that has it.

        A claim that was never settled and is older than ``stale`` may be taken over by the same
        fingerprint, unless a commit has marked it.
        """

    async def complete(self, key: IdempotencyKey, receipt: StoredResponse) -> None:
        """Keep the answer. Settling what is settled changes nothing."""

    async def release(self, key: IdempotencyKey) -> None:
        """Give the key back, unless a commit has marked it."""


class Deliveries(Protocol):
    """What is to be posted to webhooks, and what became of it."""

    async def cursor(self) -> str | None:
        """The cursor up to which events have been turned into deliveries."""

    async def enqueue(self, was: str | None, mark: str, deliveries: Sequence[Delivery]) -> bool:
        """Add deliveries and move the mark, if it still is as it was; else do nothing."""

    async def lease_due(
        self, now: TimestampMs, lease: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        """Take deliveries whose time has come; nobody else is given them until ``lease``."""

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        """Store each delivery as it is now, and add the attempt to its log."""

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]: ...

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        """Return a webhook's deliveries, newest first, with their attempts."""

    async def replay(self, delivery: Delivery) -> None:
        """Make it due again, with its attempts so far forgiven."""


class WebhookSender(Protocol):
    """Sends a signed body to a webhook's address."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        """Post it once, never following redirects. A refused address is an answer, not an error."""

    async def refusal_reason(self, url: str) -> str | None:
        """Why this address would be refused (private, loopback, not https …), or None."""


class Vault(Protocol):
    """Seals values that must not be readable at rest."""

    def fingerprint(self) -> str:
        """What tells its key from others, and nothing else about it."""

    def seal(self, value: bytes, context: str) -> str:
        """Encrypt; only the same context opens it again."""

    def open(self, sealed: str, context: str) -> bytes:
        """Decrypt. Raises Corrupt where the key or the context is another."""


class Clock(Protocol):
    """The only source of time and of chance."""

    def now(self) -> TimestampMs: ...

    def new_id(self, prefix: str) -> str:
        """A new id: the prefix, ``_`` and 24 hex digits that sort by when it was made."""

    def new_token(self, prefix: str) -> str:
        """A new secret of 256 bits."""


class Tokenizer(Protocol):
    """Tells how long texts are for a model."""

    @property
    def name(self) -> str:
        """Which tokenizer counts; ``core.tokens.ESTIMATE`` where none does and it is a guess."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the tokens of each, in order; the same text always has the same count."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All the ports, as actions receive them."""

    trees: Trees
    blobs: Blobs
    records: Records
    runs: Runs
    events: Events
    idempotency: IdempotencyStore
    deliveries: Deliveries
    sessions: Sessions
    recalls: RecallLog
    vault: Vault
    webhook_sender: WebhookSender
    clock: Clock
    tokens: Tokenizer
    repositories: Repositories | None = None
    """None where no git is kept."""
    semantic_index: SemanticIndex | None = None
    """None where memories are found by their words alone."""
    sandboxes: Mapping[str, Sandbox] = field(default_factory=dict)
    """Where commands can run, by the name of the provider."""
    approvals: ApprovalSettings = field(default_factory=ApprovalSettings)
    """How people are asked before a call runs."""
    record_cache: RevisionCache = field(default_factory=RevisionCache)
    """What was worked out from records, by their revision."""
    key_last_used: dict[str, TimestampMs] = field(default_factory=dict)
    """When each key was last used, until it is written down."""
