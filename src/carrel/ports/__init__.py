"""Ports: protocols for storage, clock, sandboxes and other side effects."""

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
from carrel.ports.sessions import TranscriptFiles as TranscriptFiles


class CorruptContent(Exception):
    """Stored bytes are missing or do not match their digest."""


class Trees(Protocol):
    """Versioned trees of all scopes. Change only by commit."""

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        """Return one tree per layer, in order, from one consistent snapshot.

        An unknown scope is empty. A Scope is read at its current revision, a SnapshotLayer at its
        own. With `paths`, only those are returned, tombstones included; otherwise every live path
        that starts with `prefix`. A SnapshotLayer that no kept run holds may lack pruned versions.
        """

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        """Return each scope's revision, 0 for an unknown one."""

    async def versions(
        self, requests: Sequence[tuple[Scope, Path, int]]
    ) -> tuple[Version | None, ...]:
        """Return each version by its number; None if it never existed or was pruned."""

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        """Return the versions of a path, newest first, tombstones included."""

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        """Return a scope's versions past a (revision, path, version), in that order.

        Tombstones are included; pruned versions are missing.
        """

    async def complete_since(self, scope: Scope) -> int:
        """Return the revision since which no version of a scope was pruned, 0 if none was."""

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        """Try to apply each commit atomically; return one outcome per commit, in order.

        A commit is refused if an expectation fails, a new path is not free or a quota is exceeded;
        this does not affect the others. Later commits of one call see earlier ones. What was
        applied is durable when this returns. If it raises, nothing of this call was applied.

        Every write adds a version and an event `workspace.updated` in the same transaction;
        `events` are added there too. Versions beyond `max_versions` that no kept run can see are
        pruned, except those of an agent whose config enables git.
        """


class Blobs(Protocol):
    """Content by digest. Content never changes, so storing it twice is harmless."""

    @property
    def inline_max_bytes(self) -> int:
        """Contents up to this size are stored by the commit that refers to them."""

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        """Store contents, in order.

        Durable at the latest with a commit that refers to them.
        """

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        """Return all requested contents, digests verified. Raises CorruptContent."""


class LargeBlobStore(Protocol):
    """Store for large contents outside the database, by digest.

    Deletion has two steps: discarded contents go to the trash, from which they can still be read
    and restored. A writer that found a content just before still has it if it commits before the
    trash is emptied after the grace period.
    """

    async def put(self, digest: Digest, content: bytes) -> None:
        """Store content durably. Existing content gets a new timestamp.

        Content in the trash is stored again.
        """

    async def get(self, digest: Digest) -> bytes | None:
        """Return the content, also from the trash, without verification; None if absent."""

    async def discard(self, digests: Collection[Digest]) -> None:
        """Move contents to the trash; absent ones are ignored."""

    async def restore(self, digests: Collection[Digest]) -> None:
        """Restore contents from the trash, which may keep a copy; absent ones are ignored."""

    async def delete(self, digests: Collection[Digest]) -> None:
        """Delete contents that are in the trash; others and absent ones are ignored."""

    def list_trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        """Digests in the trash with the time of their last discard."""

    def list_blobs(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        """Digests outside the trash, with size and time of the last put or restore."""


class ObjectStore(Protocol):
    """Keyed object store for external readers (directory or bucket).

    Every method raises OSError on failure.
    """

    @property
    def forbids_nested_keys(self) -> bool:
        """Whether a key cannot exist while another key lies below it."""

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        """Store each content under its key, replacing atomically.

        Returns the keys that cannot be stored, each with the reason.
        """

    async def get(self, key: str) -> bytes | None: ...

    async def delete(self, keys: Collection[str]) -> None:
        """Delete keys; absent ones are ignored."""

    def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        """Keys that start with `prefix`, which is empty or ends with a slash.

        Each with the digest of its content; None if it was not written through this port.
        """


class LeaderLock(Protocol):
    """Leader lock: at most one process of a deployment holds it.

    Released when the holder dies.
    """

    async def try_acquire(self) -> bool:
        """Return whether this process holds the lock now. Raises the store's errors."""

    async def release(self) -> None:
        """Release the lock; no error if not held."""


class Records(Protocol):
    """Records. They change only by Trees.commit."""

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        """Return each record of this tenant and type by id."""

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        """Return each record by one of its unique keys, in any tenant."""

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        index_key: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return records ordered by id, past `after`, optionally with this index key.

        An empty tenant lists all tenants: only for maintenance.
        """

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        """Return the number of records of this tenant and type for each index key."""

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        index_key: str,
        terms: Sequence[str],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return records with this index key and a word that starts with a term.

        Ordered by number of matching terms, then of whole words, then by id descending. Terms are
        those of `core.search.full_text`.
        """

    async def collection_revisions(
        self, collections: Sequence[tuple[str, RecordType]]
    ) -> tuple[int, ...]:
        """Return the revision of each (tenant, type), 0 if it never had a record."""

    async def revision(self) -> int:
        """Return a number that increases with every change of an audited record."""

    async def mark_used(self, used_at: Mapping[str, TimestampMs]) -> None:
        """Store when each id was last used; earlier times never replace later ones."""

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]: ...

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        """Return audit entries, newest first, with ids below `before` if not 0."""


class Runs(Protocol):
    """Runs and their snapshots."""

    async def start(
        self, runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]
    ) -> tuple[Run, ...]:
        """Store each run with its layers; a Scope is frozen at its current revision.

        The cost is independent of the number of files. Logs an event `run.started`.
        """

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]: ...

    async def list(
        self, tenant: str, *, scope: Scope | None = None, before: str = "", limit: int = 100
    ) -> tuple[Run, ...]:
        """Return runs by id descending, those before `before` if given."""

    async def newest_by_scope(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        """Return the newest run of each scope (by id), None if it has none."""

    async def update(self, run: Run, expected: Run) -> bool:
        """Store status, ended_at and snapshot_kept if the run still equals `expected`.

        Else return False. Logs an event if the status changes. Releasing a run deletes its
        snapshot.
        """


class Events(Protocol):
    """Event log, written in the transaction of the change."""

    async def read_after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        """Return events past a cursor (None: from the start), oldest first.

        Raises ValidationError. No event is missed: one that becomes visible later has a later
        cursor. Without a filter, events of all tenants: only for delivery.
        """

    async def latest_cursor(self) -> str:
        """Return a cursor past all visible events."""

    async def wait_for_new(self, seconds: float) -> bool:
        """Wait until new events may exist (True) or the timeout passes (False).

        Writes of other processes wake it too.
        """


class IdempotencyStore(Protocol):
    """Responses to requests with an Idempotency-Key."""

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale_before: TimestampMs
    ) -> Claim:
        """Claim the key for this request, or return the state of the request that has it.

        An incomplete claim older than `stale_before` may be taken over by the same fingerprint,
        unless a commit has marked it.
        """

    async def complete(self, key: IdempotencyKey, response: StoredResponse) -> None:
        """Store the response. Completing twice changes nothing."""

    async def release(self, key: IdempotencyKey) -> None:
        """Release the claim, unless a commit has marked it."""


class Deliveries(Protocol):
    """Webhook deliveries and their attempts."""

    async def cursor(self) -> str | None:
        """Return the cursor up to which events have been turned into deliveries."""

    async def enqueue(
        self, expected: str | None, cursor: str, deliveries: Sequence[Delivery]
    ) -> bool:
        """Add deliveries and advance the cursor if it still equals `expected`.

        Else return False.
        """

    async def lease_due(
        self, now: TimestampMs, leased_until: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        """Lease due deliveries; no other worker gets them until `leased_until`."""

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        """Store each delivery and append the attempt to its log."""

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]: ...

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        """Return a webhook's deliveries, newest first, with their attempts."""

    async def replay(self, delivery: Delivery) -> None:
        """Make a delivery due again with its attempts reset."""


class WebhookSender(Protocol):
    """Sends signed bodies to webhook URLs."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        """POST once, without following redirects. A refused URL is a result, not an error."""

    async def refusal_reason(self, url: str) -> str | None:
        """Return why this URL is refused (private, loopback, not https), or None."""


class Vault(Protocol):
    """Encrypts values at rest."""

    def fingerprint(self) -> str:
        """Return an identifier of the key that reveals nothing else about it."""

    def seal(self, value: bytes, context: str) -> str:
        """Encrypt; only the same context can decrypt."""

    def open(self, sealed: str, context: str) -> bytes:
        """Decrypt. Raises CorruptContent if the key or the context differs."""


class Clock(Protocol):
    """The only source of time and randomness."""

    def now(self) -> TimestampMs: ...

    def new_id(self, prefix: str) -> str:
        """Return a new id: prefix, `_` and 24 hex digits that sort by creation time."""

    def new_token(self, prefix: str) -> str:
        """Return a new secret of 256 bits."""


class Tokenizer(Protocol):
    """Counts tokens of texts for a model."""

    @property
    def name(self) -> str:
        """Name of the tokenizer; `token_estimate.ESTIMATE` if counts are estimates."""

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the token count of each text, in order. Deterministic."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports, as passed to actions."""

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
    tokenizer: Tokenizer
    repositories: Repositories | None = None
    """None if git is disabled."""
    semantic_index: SemanticIndex | None = None
    """None if memories are only searched by full text."""
    sandboxes: Mapping[str, Sandbox] = field(default_factory=dict)
    """Sandbox providers by name."""
    approvals: ApprovalSettings = field(default_factory=ApprovalSettings)
    record_cache: RevisionCache = field(default_factory=RevisionCache)
    """Values derived from records, by records revision."""
    key_last_used: dict[str, TimestampMs] = field(default_factory=dict)
    """Last use of each key, not yet stored."""
