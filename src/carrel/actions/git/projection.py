"""Making a scope's git repository from what it said: from the beginning, or from where it ended.

What stands there depends on the log and on the tenant's rules for redaction alone, so that it can
be made again anywhere: whatever else is found in a repository, it is begun anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.git import checkpoints
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.progress import ProgressCounter, Watch, no_progress
from carrel.core.git.log import StoreCommit, commit_of, holdable, revision_of, revisions, tag_of
from carrel.core.git.objects import GitCommit, GitObject, blob, read_commit, read_tree
from carrel.core.git.tree_builder import GitTreeBuilder
from carrel.core.identifiers import Digest, Path, Scope
from carrel.core.runs import SnapshotLayer
from carrel.core.store.record import RecordType
from carrel.core.store.tree import Blob, Head, Version
from carrel.core.version import VERSION
from carrel.ports import Ports, Repository

MAIN: Final = "refs/heads/main"
_TAGS: Final = "refs/tags/"
_PAGE: Final = 1000
_TOGETHER: Final = 200
"""Versions whose contents are looked at together."""
_HEAVY: Final = 4 * 2**20
"""Bytes of contents in memory at once, unless one alone is larger."""
_MOST_KNOWN: Final = 50_000


@dataclass(frozen=True, slots=True)
class ProjectionResult:
    """How a repository stands to its scope."""

    tip: str | None
    """The id of the newest commit; None where nothing was ever said."""
    revision: int
    made: int
    """How many commits were made for it to stand so."""
    anew: bool


async def project(
    ports: Ports,
    repository: Repository,
    scope: Scope,
    *,
    anew: bool = False,
    watch: Watch = no_progress,
) -> ProjectionResult:
    """Bring a repository that is held up to date. Raises Corrupt for bytes that are damaged."""
    rules = await load_rules(ports, scope.tenant)
    since = await ports.trees.complete_since(scope)
    key = _key(rules, since)
    projector = GitProjector(ports, repository, scope, rules, since)
    anew = anew or await repository.key() != key or not await projector.resume()
    if anew:
        await repository.begin(key)
        projector = GitProjector(ports, repository, scope, rules, since)
        await projector.start()
    made = await projector.follow(ProgressCounter(watch, "making commits"))
    await projector.mark()
    if anew:
        await repository.settle()
    return ProjectionResult(projector.newest, projector.revision, made, anew)


async def listed(repository: Repository, tree: str) -> dict[str, str]:
    """The ids of all files beneath a tree, by path."""
    files: dict[str, str] = {}
    folders = {"": tree}
    while folders:
        found = await repository.read(list(folders.values()))
        inner: dict[str, str] = {}
        for folder, one in zip(folders, found, strict=True):
            for is_folder, name, id in read_tree(one.body) if one else ():
                (inner if is_folder else files)[f"{folder}{name}{'/' if is_folder else ''}"] = id
        folders = inner
    return files


class GitProjector:
    """One scope on its way into one repository."""

    def __init__(
        self, ports: Ports, repository: Repository, scope: Scope, rules: TenantRules, since: int
    ) -> None:
        self._ports, self._repository, self._scope = ports, repository, scope
        self._redactor, self._since = rules.redactor, since
        self._grove = GitTreeBuilder()
        self._ids: dict[Digest, str] = {}
        """Git's ids for contents."""
        self._objects: list[GitObject] = []
        self._weight = 0
        self._lasting = False
        """Whether names may be moved while it goes on, since others see them already."""
        self.newest: str | None = None
        self.revision = 0

    async def start(self) -> None:
        """At what is known first, all of it at once."""
        if self._since:
            [tree] = await self._ports.trees.read([SnapshotLayer(self._scope, self._since)])
            await self._plant(tree.heads.values())

    async def resume(self) -> bool:
        """Go on after the newest commit, if it is the one that would have been made; else False."""
        tip = await self._read((await self._repository.refs()).get(MAIN))
        revision = revision_of(tip.message) if tip else None
        [now] = await self._ports.trees.revisions([self._scope])
        if tip is None or revision is None:
            return tip is None and now == 0
        page = await self._ports.trees.log(self._scope, after=(revision, "", 0), limit=1)
        said = next(revisions(page), None)
        if said is None or self._commit(said, tip.tree, next(iter(tip.parents), None)).id != tip.id:
            return False
        if now > revision and not await self._replant(tip.tree, revision):
            return False
        self.newest, self.revision, self._lasting = tip.id, revision, True
        return True

    async def follow(self, tally: ProgressCounter) -> int:
        """Make a commit of every revision that has none, and say how many these were."""
        [now] = await self._ports.trees.revisions([self._scope])
        tally.expect(max(0, now - max(self.revision, self._since - 1)))
        made = 0
        if now == self.revision:
            return made
        async for some in self._batches():
            blobs = [v.head.entry.blob for said in some for v in said.versions if v.head.entry]
            await self._take(blobs)
            for said in some:
                self._grow(said)
            made += len(some)
            tally.add(len(some))
            if self._weight > _HEAVY:
                await self._flush()
        await self._flush()
        if self.newest is not None:
            await self._repository.point({MAIN: self.newest})
        return made

    async def mark(self) -> None:
        """Give every checkpoint its tag."""
        known = await self._repository.refs()
        wanted = {
            revision: one
            for revision, one in (await checkpoints.marked(self._ports, self._scope)).items()
            if revision >= self._since and f"{_TAGS}{one.name}" not in known
        }
        commit = await self._read(self.newest) if wanted else None
        while wanted and commit is not None:
            revision = revision_of(commit.message) or 0
            if one := wanted.pop(revision, None):
                tag = tag_of(one, commit.id, self._clean)
                await self._repository.write([tag])
                await self._repository.point({f"{_TAGS}{one.name}": tag.id})
            if not wanted or revision < min(wanted):
                break
            commit = await self._read(next(iter(commit.parents), None))

    async def _read(self, id: str | None) -> GitCommit | None:
        [found] = await self._repository.read([id]) if id else [None]
        return read_commit(found) if found else None

    async def _batches(self) -> AsyncIterator[Sequence[StoreCommit]]:
        after = (self.revision + 1, "", 0) if self.revision else (self._since, "", 0)
        some: list[StoreCommit] = []
        async for said in _said(self._ports, self._scope, after):
            some.append(said)
            if sum(len(one.versions) for one in some) >= _TOGETHER:
                yield some
                some = []
        if some:
            yield some

    def _grow(self, said: StoreCommit) -> None:
        for version in said.versions:
            self._put(version.head)
        self._keep(self._grove.grown())
        commit = self._commit(said, self._grove.root, self.newest)
        self._keep([commit])
        self.newest, self.revision = commit.id, said.revision

    def _commit(self, said: StoreCommit, tree: str, parent: str | None) -> GitObject:
        pruned = said.revision == self._since
        return commit_of(said, tree, parent, self._clean, pruned=pruned)

    def _put(self, head: Head) -> None:
        if self._shown(head.path):
            blob = head.entry.blob if head.entry else None
            self._grove.put(head.path.text, self._ids[blob.digest] if blob else None)

    def _shown(self, path: Path) -> bool:
        return holdable(path) and not self._redactor.finds_in(path.text)

    def _clean(self, text: str) -> str:
        encoded = text.encode("utf-8", "replace")
        return self._redactor.redact(encoded).content.decode("utf-8", "replace")

    async def _plant(self, heads: Iterable[Head]) -> None:
        """Begin with these files."""
        shown = [head for head in heads if self._shown(head.path)]
        for some in _slices(shown):
            await self._take([head.entry.blob for head in some if head.entry])
            for head in some:
                self._put(head)

    async def _replant(self, tree: str, revision: int) -> bool:
        """The same from a repository's tree, as far as that shows them; False if it is another."""
        [then] = await self._ports.trees.read([SnapshotLayer(self._scope, revision)])
        files = await listed(self._repository, tree)
        hidden = [head for path, head in then.heads.items() if path.text not in files]
        for path, id in files.items():
            self._grove.put(path, id)
        await self._plant(hidden)
        self._keep(self._grove.grown())
        return self._grove.root == tree

    async def _take(self, blobs: Iterable[Blob]) -> None:
        """Have these contents, and know git's ids for them."""
        if len(self._ids) > _MOST_KNOWN:
            self._ids.clear()
        unknown = {blob.digest: blob for blob in blobs if blob.digest not in self._ids}
        for some in _portions(list(unknown.values())):
            contents = await self._ports.blobs.get(some)
            made = await asyncio.to_thread(self._redacted, contents)
            for digest, one in made.items():
                self._ids[digest] = one.id
            self._keep(made.values())
            if self._weight > _HEAVY:
                await self._flush()

    def _redacted(self, contents: Mapping[Digest, bytes]) -> Mapping[Digest, GitObject]:
        redact = self._redactor.redact
        return {digest: blob(redact(content).content) for digest, content in contents.items()}

    def _keep(self, objects: Iterable[GitObject]) -> None:
        for one in objects:
            self._objects.append(one)
            self._weight += len(one.body) + 100

    async def _flush(self) -> None:
        """What a name stands for is written before it."""
        if self._objects:
            await self._repository.write(self._objects)
        self._objects, self._weight = [], 0
        if self._lasting and self.newest is not None:
            await self._repository.point({MAIN: self.newest})


async def _said(
    ports: Ports, scope: Scope, after: tuple[int, str, int]
) -> AsyncIterator[StoreCommit]:
    """Revision by revision, each whole."""
    held: tuple[Version, ...] = ()
    while page := await ports.trees.log(scope, after=after, limit=_PAGE):
        *whole, last = revisions([*held, *page])
        for said in whole:
            yield said
        head = page[-1].head
        held, after = last.versions, (head.revision, head.path.text, head.version)
    if held:
        yield StoreCommit(held)


def _key(rules: TenantRules, since: int) -> str:
    """What a repository was made by: where any of it has changed it is made anew."""
    secrets = [
        collection_revision.revision
        for collection_revision in rules.shelves
        if collection_revision.type is RecordType.SECRET
    ]
    return json.dumps([VERSION, since, *secrets, rules.policy.redaction])


def _slices(heads: Sequence[Head]) -> Iterator[Sequence[Head]]:
    return (heads[start : start + _TOGETHER] for start in range(0, len(heads), _TOGETHER))


def _portions(blobs: Sequence[Blob]) -> Iterator[Sequence[Blob]]:
    """As many at a time as memory is meant to hold."""
    some: list[Blob] = []
    weight = 0
    for one in blobs:
        if some and weight + one.size > _HEAVY:
            yield some
            some, weight = [], 0
        some.append(one)
        weight += one.size
    if some:
        yield some
