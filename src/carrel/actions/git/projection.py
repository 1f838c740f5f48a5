"""Projects a scope's log into its git repository, incrementally or from scratch.

The result depends only on the log and the tenant's redaction rules, so it can be rebuilt
anywhere. A repository with other content is rebuilt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.git import checkpoints
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.progress import ProgressCallback, ProgressCounter, no_progress
from carrel.core.git.log import (
    CommitDraft,
    GitCommit,
    StoreCommit,
    can_hold,
    draft_commit,
    draft_tag,
    group_by_revision,
    parse_revision,
)
from carrel.core.identifiers import Digest, Path, Scope
from carrel.core.runs import SnapshotLayer
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Head, Version
from carrel.core.store.record import RecordType
from carrel.core.version import VERSION
from carrel.ports import Ports, Repository

MAIN_REF: Final = "refs/heads/main"
_TAG_PREFIX: Final = "refs/tags/"
_LOG_PAGE_SIZE: Final = 1000
_BATCH_VERSIONS: Final = 200
"""Versions whose contents are loaded together."""
_MAX_PENDING_BYTES: Final = 4 * 2**20
"""Contents and git objects in memory at once, unless a single content is larger."""
_MAX_CACHED_IDS: Final = 50_000


@dataclass(frozen=True, slots=True)
class ProjectionResult:
    tip: str | None
    """Id of the newest commit; None if the scope has no revision."""
    revision: int
    commits_added: int
    """Number of commits added."""
    rebuilt: bool
    """Whether the repository was rebuilt from scratch."""


async def project(
    ports: Ports,
    repository: Repository,
    scope: Scope,
    *,
    rebuild: bool = False,
    on_progress: ProgressCallback = no_progress,
) -> ProjectionResult:
    """Update a locked repository. Raises CorruptContent for damaged content."""
    rules = await load_rules(ports, scope.tenant)
    since = await ports.trees.complete_since(scope)
    key = _projection_key(rules, since)
    projector = GitProjector(ports, repository, scope, rules, since)
    rebuild = rebuild or await repository.load_key() != key or not await projector.resume()
    if rebuild:
        await repository.begin(key)
        projector = GitProjector(ports, repository, scope, rules, since)
        await projector.start()
    commits_added = await projector.follow(ProgressCounter(on_progress, "making commits"))
    await projector.add_tags()
    if rebuild:
        await repository.publish()
    return ProjectionResult(projector.tip, projector.revision, commits_added, rebuild)


class GitProjector:
    """Adds the commits of one scope to one repository."""

    def __init__(
        self, ports: Ports, repository: Repository, scope: Scope, rules: TenantRules, since: int
    ) -> None:
        self._ports, self._repository, self._scope = ports, repository, scope
        self._redactor, self._since = rules.redactor, since
        self._blob_ids: dict[Digest, str] = {}
        self.tip: str | None = None
        self.revision = 0

    async def start(self) -> None:
        """Start with the files of the first revision from which the log is complete."""
        if self._since:
            [tree] = await self._ports.trees.read([SnapshotLayer(self._scope, self._since)])
            await self._add_files(tree.heads.values())

    async def resume(self) -> bool:
        """Continue after the newest commit; False if this log would not create it."""
        tip = await self._find_commit((await self._repository.list_refs()).get(MAIN_REF))
        revision = parse_revision(tip.message) if tip else None
        [current] = await self._ports.trees.revisions([self._scope])
        if tip is None or revision is None:
            return tip is None and current == 0
        page = await self._ports.trees.log(self._scope, after=(revision, "", 0), limit=1)
        commit = next(group_by_revision(page), None)
        if commit is None or await self._commit_id(commit, tip) != tip.id:
            return False
        if current > revision and not await self._load_tree(tip.tree, revision):
            return False
        self.tip, self.revision = tip.id, revision
        return True

    async def follow(self, progress: ProgressCounter) -> int:
        """Add a commit for every revision that has none; return how many."""
        [current] = await self._ports.trees.revisions([self._scope])
        progress.set_total(max(0, current - max(self.revision, self._since - 1)))
        added = 0
        if current == self.revision:
            return added
        async for batch in self._iter_batches():
            versions = [version for commit in batch for version in commit.versions]
            await self._put_blobs(v.head.entry.blob for v in versions if v.head.entry)
            commits = [(self._draft(commit), self._changes(commit)) for commit in batch]
            self.tip = (await self._repository.put_commits(commits, self.tip))[-1]
            self.revision = batch[-1].revision
            added += len(batch)
            progress.add(len(batch))
            if self._repository.pending_bytes > _MAX_PENDING_BYTES:
                await self._write()
        await self._write()
        return added

    async def add_tags(self) -> None:
        """Add a tag for every checkpoint that has none."""
        refs = await self._repository.list_refs()
        missing = {
            revision: checkpoint
            for revision, checkpoint in (
                await checkpoints.load_checkpoints(self._ports, self._scope)
            ).items()
            if revision >= self._since and f"{_TAG_PREFIX}{checkpoint.name}" not in refs
        }
        commit = await self._find_commit(self.tip) if missing else None
        while missing and commit is not None:
            revision = parse_revision(commit.message) or 0
            if checkpoint := missing.pop(revision, None):
                draft = draft_tag(checkpoint, self._redact)
                tag = await self._repository.put_tag(draft, commit.id)
                await self._repository.update_refs({f"{_TAG_PREFIX}{checkpoint.name}": tag})
            if not missing or revision < min(missing):
                break
            commit = await self._find_commit(next(iter(commit.parents), None))

    async def _find_commit(self, id: str | None) -> GitCommit | None:
        return (await self._repository.find_commits([id]))[0] if id else None

    async def _iter_batches(self) -> AsyncIterator[Sequence[StoreCommit]]:
        after = (self.revision + 1, "", 0) if self.revision else (self._since, "", 0)
        batch: list[StoreCommit] = []
        size = 0
        async for commit in _iter_store_commits(self._ports, self._scope, after):
            batch.append(commit)
            size += len(commit.versions)
            if size >= _BATCH_VERSIONS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _draft(self, commit: StoreCommit) -> CommitDraft:
        return draft_commit(commit, self._redact, pruned=commit.revision == self._since)

    async def _commit_id(self, commit: StoreCommit, tip: GitCommit) -> str:
        parent = next(iter(tip.parents), None)
        return await self._repository.commit_id(self._draft(commit), tip.tree, parent)

    def _changes(self, commit: StoreCommit) -> Mapping[str, str | None]:
        return self._blob_ids_by_path(version.head for version in commit.versions)

    def _blob_ids_by_path(self, heads: Iterable[Head]) -> Mapping[str, str | None]:
        return {
            head.path.text: self._blob_ids[head.entry.blob.digest] if head.entry else None
            for head in heads
            if self._is_visible(head.path)
        }

    def _is_visible(self, path: Path) -> bool:
        return can_hold(path) and not self._redactor.find_in_text(path.text)

    def _redact(self, text: str) -> str:
        encoded = text.encode("utf-8", "replace")
        return self._redactor.redact(encoded).content.decode("utf-8", "replace")

    async def _add_files(self, heads: Iterable[Head]) -> None:
        """Add files to the tree that the next commit changes."""
        visible = [head for head in heads if self._is_visible(head.path)]
        for start in range(0, len(visible), _BATCH_VERSIONS):
            batch = visible[start : start + _BATCH_VERSIONS]
            await self._put_blobs(head.entry.blob for head in batch if head.entry)
            await self._repository.put_files(self._blob_ids_by_path(batch))

    async def _load_tree(self, tree: str, revision: int) -> bool:
        """Load the files of a commit and those it hides; False if they form another tree."""
        [snapshot] = await self._ports.trees.read([SnapshotLayer(self._scope, revision)])
        files = await self._repository.list_files(tree)
        await self._repository.put_files(files)
        await self._add_files(h for path, h in snapshot.heads.items() if path.text not in files)
        return await self._repository.put_files({}) == tree

    async def _put_blobs(self, blobs: Iterable[Blob]) -> None:
        """Add redacted contents and cache their ids."""
        if len(self._blob_ids) > _MAX_CACHED_IDS:
            self._blob_ids.clear()
        missing = {blob.digest: blob for blob in blobs if blob.digest not in self._blob_ids}
        for batch in _batches_by_size(list(missing.values())):
            contents = await self._ports.blobs.get(batch)
            redacted = await asyncio.to_thread(self._redact_contents, contents)
            ids = await self._repository.put_blobs(redacted)
            self._blob_ids.update(zip(contents, ids, strict=True))
            if self._repository.pending_bytes > _MAX_PENDING_BYTES:
                await self._write()

    def _redact_contents(self, contents: Mapping[Digest, bytes]) -> Sequence[bytes]:
        return [self._redactor.redact(content).content for content in contents.values()]

    async def _write(self) -> None:
        await self._repository.update_refs({MAIN_REF: self.tip} if self.tip else {})


async def _iter_store_commits(
    ports: Ports, scope: Scope, after: tuple[int, str, int]
) -> AsyncIterator[StoreCommit]:
    """Yield the commits of a log; a commit may span two pages of the log."""
    last: tuple[Version, ...] = ()
    while page := await ports.trees.log(scope, after=after, limit=_LOG_PAGE_SIZE):
        *complete, partial = group_by_revision([*last, *page])
        for commit in complete:
            yield commit
        head = page[-1].head
        last, after = partial.versions, (head.revision, head.path.text, head.version)
    if last:
        yield StoreCommit(last)


def _projection_key(rules: TenantRules, since: int) -> str:
    """Key of all inputs besides the log; a repository with another key is rebuilt."""
    secrets = [
        collection.revision
        for collection in rules.collection_revisions
        if collection.type is RecordType.SECRET
    ]
    return json.dumps([VERSION, since, *secrets, rules.policy.redaction])


def _batches_by_size(blobs: Sequence[Blob]) -> Iterator[Sequence[Blob]]:
    batch: list[Blob] = []
    size = 0
    for blob in blobs:
        if batch and size + blob.size > _MAX_PENDING_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(blob)
        size += blob.size
    if batch:
        yield batch
