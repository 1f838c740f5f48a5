"""Writes a git repository: objects first, refs last, a rebuild beside the old."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path as File
from typing import Any, Final, TypeVar

from dulwich.errors import (
    ChecksumMismatch,
    FileFormatException,
    NotGitRepository,
    ObjectFormatException,
)
from dulwich.file import FileLocked
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tag, Tree
from dulwich.refs import Ref
from dulwich.repo import Repo

from carrel.adapters.git.tree_builder import FOLDER_MODE, TreeBuilder
from carrel.core.errors import NotFound
from carrel.core.git.log import COMMITTER, CommitDraft, GitCommit, TagDraft

_KEY_FILE: Final = "carrel-key"
_MIN_PACK_OBJECTS: Final = 64
"""Fewer objects at a time are written as loose files."""
_MAX_LOOSE_OBJECTS: Final = 2000
"""Above this number loose objects are packed."""
_OBJECT_OVERHEAD_BYTES: Final = 100

_UNREADABLE: Final = (
    *(KeyError, ValueError, zlib.error),
    *(ChecksumMismatch, FileFormatException, ObjectFormatException),
)
"""Errors of damaged objects, which count as absent and are written again."""

RunInThread = Callable[..., Awaitable[Any]]
AnyObject = TypeVar("AnyObject", bound=ShaFile)


class GitRepository:
    """Bare repository with dulwich. All work runs in threads of `run_in_thread`."""

    def __init__(self, path: File, run_in_thread: RunInThread) -> None:
        self._path, self._run = path, run_in_thread
        self._new_path = path.with_suffix(".new")
        self._repo: Repo | None = None
        self._tree = TreeBuilder()
        self._pending: dict[ObjectID, ShaFile] = {}
        self.pending_bytes = 0

    async def load_key(self) -> str | None:
        key: str | None = await self._run(self._load_key)
        return key

    async def list_refs(self) -> Mapping[str, str]:
        refs: Mapping[str, str] = await self._run(self._list_refs)
        return refs

    async def find_commits(self, ids: Sequence[str]) -> tuple[GitCommit | None, ...]:
        commits: tuple[GitCommit | None, ...] = await self._run(self._find_commits, tuple(ids))
        return commits

    async def find_blobs(self, ids: Sequence[str]) -> tuple[bytes | None, ...]:
        contents: tuple[bytes | None, ...] = await self._run(self._find_blobs, tuple(ids))
        return contents

    async def find_tagged(self, id: str) -> str | None:
        commit: str | None = await self._run(self._find_tagged, id)
        return commit

    async def list_files(self, tree: str) -> Mapping[str, str]:
        files: Mapping[str, str] = await self._run(self._list_files, tree)
        return files

    async def begin(self, key: str) -> None:
        await self._run(self._begin, key)

    async def put_blobs(self, contents: Sequence[bytes]) -> Sequence[str]:
        ids: Sequence[str] = await self._run(self._put_blobs, contents)
        return ids

    async def put_files(self, files: Mapping[str, str | None]) -> str:
        tree: str = await self._run(self._put_files, files)
        return tree

    async def put_commits(
        self, commits: Sequence[tuple[CommitDraft, Mapping[str, str | None]]], parent: str | None
    ) -> Sequence[str]:
        ids: Sequence[str] = await self._run(self._put_commits, commits, parent)
        return ids

    async def put_tag(self, tag: TagDraft, commit: str) -> str:
        [id] = self._add([_build_tag(tag, commit)])
        return id

    async def commit_id(self, commit: CommitDraft, tree: str, parent: str | None) -> str:
        return _build_commit(commit, tree, parent).id.decode()

    async def update_refs(self, refs: Mapping[str, str]) -> None:
        await self._run(self._update_refs, refs)

    async def publish(self) -> None:
        await self._run(self._publish)

    def close(self) -> None:
        if self._repo is not None:
            self._repo.close()
            self._repo = None

    def _open(self) -> Repo:
        if self._repo is None:
            self._repo = open_repository(self._path)
        return self._repo

    def _load_key(self) -> str | None:
        try:
            self._open()
            return (self._path / _KEY_FILE).read_text("utf-8")
        except (NotFound, FileNotFoundError, UnicodeDecodeError):
            return None

    def _list_refs(self) -> Mapping[str, str]:
        refs = self._open().refs.as_dict()
        return {name.decode(): id.decode() for name, id in refs.items() if name != b"HEAD"}

    def _find(self, id: str, kind: type[AnyObject]) -> AnyObject | None:
        object_id = ObjectID(id.encode())
        try:
            item = self._pending.get(object_id)
            if item is None:
                item = self._open().object_store[object_id]
        except _UNREADABLE:
            return None
        return item if isinstance(item, kind) else None

    def _find_commits(self, ids: Sequence[str]) -> tuple[GitCommit | None, ...]:
        return tuple(self._find_commit(id) for id in ids)

    def _find_commit(self, id: str) -> GitCommit | None:
        commit = self._find(id, Commit)
        try:
            return _parse_commit(id, commit) if commit else None
        except _UNREADABLE:
            return None

    def _find_blobs(self, ids: Sequence[str]) -> tuple[bytes | None, ...]:
        blobs = [self._find(id, Blob) for id in ids]
        return tuple(None if blob is None else blob.data for blob in blobs)

    def _find_tagged(self, id: str) -> str | None:
        tag = self._find(id, Tag)
        return tag.object[1].decode() if tag else None

    def _list_files(self, tree: str) -> Mapping[str, str]:
        files: dict[str, str] = {}
        folders = [("", tree)]
        for prefix, id in folders:
            tree_object = self._find(id, Tree)
            for entry in tree_object.items() if tree_object else ():
                assert entry.path is not None
                assert entry.sha is not None
                path, child = prefix + entry.path.decode(), entry.sha.decode()
                if entry.mode == FOLDER_MODE:
                    folders.append((f"{path}/", child))
                else:
                    files[path] = child
        return files

    def _begin(self, key: str) -> None:
        self.close()
        shutil.rmtree(self._new_path, ignore_errors=True)
        self._new_path.mkdir(mode=0o700)
        Repo.init_bare(self._new_path, default_branch=b"main").close()
        (self._new_path / _KEY_FILE).write_text(key, "utf-8")
        self._repo = open_repository(self._new_path)
        self._tree, self._pending, self.pending_bytes = TreeBuilder(), {}, 0

    def _put_blobs(self, contents: Sequence[bytes]) -> Sequence[str]:
        return self._add([Blob.from_string(content) for content in contents])

    def _put_files(self, files: Mapping[str, str | None]) -> str:
        self._tree.set_files(files)
        self._add(self._tree.build())
        return self._tree.root.decode()

    def _put_commits(
        self, commits: Sequence[tuple[CommitDraft, Mapping[str, str | None]]], parent: str | None
    ) -> Sequence[str]:
        ids: list[str] = []
        for draft, files in commits:
            tree = self._put_files(files)
            [parent] = self._add([_build_commit(draft, tree, parent)])
            ids.append(parent)
        return ids

    def _add(self, objects: Iterable[ShaFile]) -> list[str]:
        ids = []
        for item in objects:
            ids.append(item.id.decode())
            if item.id not in self._pending:
                self._pending[item.id] = item
                self.pending_bytes += item.raw_length() + _OBJECT_OVERHEAD_BYTES
        return ids

    def _update_refs(self, refs: Mapping[str, str]) -> None:
        self._write_pending()
        container = self._open().refs
        for name, id in refs.items():
            set_ref = partial(container.__setitem__, Ref(name.encode()), ObjectID(id.encode()))
            _retry_without_stale_lock(set_ref)

    def _write_pending(self) -> None:
        store = self._open().object_store
        objects = list(self._pending.values())
        self._pending, self.pending_bytes = {}, 0
        if len(objects) >= _MIN_PACK_OBJECTS:
            store.add_objects([(item, None) for item in objects])
            return
        for item in objects:
            _retry_without_stale_lock(partial(store.add_object, item))
        if store.count_loose_objects() > _MAX_LOOSE_OBJECTS:
            store.pack_loose_objects()

    def _publish(self) -> None:
        """Put the new repository in place of the old one.

        A crash between the two renames leaves none, and the next call builds it again.
        """
        self.close()
        old = self._path.with_suffix(".old")
        shutil.rmtree(old, ignore_errors=True)
        if self._path.exists():
            os.rename(self._path, old)
        os.rename(self._new_path, self._path)
        shutil.rmtree(old, ignore_errors=True)


def open_repository(path: File) -> Repo:
    """Open a repository for durable writes. Raises NotFound."""
    try:
        repo = Repo(str(path))
    except NotGitRepository:
        raise NotFound("no such repository") from None
    repo.object_store.fsync_object_files = True
    return repo


def _retry_without_stale_lock(function: Callable[[], None]) -> None:
    """Call the function; if git's lock file exists, remove it and call again.

    Callers hold our own lock, so git's was left by a process that died.
    """
    try:
        function()
    except FileLocked as locked:
        os.unlink(locked.lockfilename)
        function()


def _build_commit(draft: CommitDraft, tree: str, parent: str | None) -> Commit:
    commit = Commit()
    commit.tree = ObjectID(tree.encode())
    commit.parents = [] if parent is None else [ObjectID(parent.encode())]
    commit.author, commit.committer = draft.author.encode(), COMMITTER.encode()
    commit.author_time = commit.commit_time = draft.at // 1000
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = draft.message
    return commit


def _build_tag(draft: TagDraft, commit: str) -> Tag:
    tag = Tag()
    tag.object = (Commit, ObjectID(commit.encode()))
    tag.name, tag.tagger = draft.name.encode(), draft.tagger.encode()
    tag.tag_time, tag.tag_timezone = draft.at // 1000, 0
    tag.message = draft.message
    return tag


def _parse_commit(id: str, commit: Commit) -> GitCommit:
    return GitCommit(
        id,
        tree=commit.tree.decode(),
        parents=tuple(parent.decode() for parent in commit.parents),
        author=commit.author.decode("utf-8", "replace"),
        seconds=commit.author_time,
        message=commit.message.decode("utf-8", "replace"),
    )
