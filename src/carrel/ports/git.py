"""Git repositories that are built from the store and served read-only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from carrel.core.git.log import CommitDraft, GitCommit, TagDraft
from carrel.core.identifiers import Scope


class Repository(Protocol):
    """A git repository that is locked for the caller.

    It is a projection of a scope's log: if lost, it is built again with the same ids. Added objects
    are pending until `update_refs`. Ids are hexadecimal.
    """

    @property
    def pending_bytes(self) -> int:
        """Approximate memory size of pending objects."""

    async def load_key(self) -> str | None:
        """Return the key it was begun with; None if there is no usable repository."""

    async def list_refs(self) -> Mapping[str, str]:
        """Return ids by the names of refs, such as ``refs/heads/main``."""

    async def find_commits(self, ids: Sequence[str]) -> tuple[GitCommit | None, ...]:
        """Return each commit; None if it is absent or damaged."""

    async def find_blobs(self, ids: Sequence[str]) -> tuple[bytes | None, ...]:
        """Return the content of each blob; None if it is absent or damaged."""

    async def find_tagged(self, id: str) -> str | None:
        """Return the id of the commit that an annotated tag points to."""

    async def list_files(self, tree: str) -> Mapping[str, str]:
        """Return the ids of all blobs below a tree, by path."""

    async def begin(self, key: str) -> None:
        """Start an empty repository; `publish` replaces the current one by it."""

    async def put_blobs(self, contents: Sequence[bytes]) -> Sequence[str]:
        """Add contents and return their ids."""

    async def put_files(self, files: Mapping[str, str | None]) -> str:
        """Set or remove (None) blobs by path in the current tree; return its id.

        The tree is empty when the repository is opened or begun. If a path is a file and a folder
        at once, the tree contains the folder, and the file again once the folder is gone.
        """

    async def put_commits(
        self, commits: Sequence[tuple[CommitDraft, Mapping[str, str | None]]], parent: str | None
    ) -> Sequence[str]:
        """Add a chain of commits, each with its changes; return their ids."""

    async def put_tag(self, tag: TagDraft, commit: str) -> str:
        """Add an annotated tag of a commit and return its id."""

    async def commit_id(self, commit: CommitDraft, tree: str, parent: str | None) -> str:
        """Return the id that a commit would have, without adding it."""

    async def update_refs(self, refs: Mapping[str, str]) -> None:
        """Write pending objects durably, then set refs."""

    async def publish(self) -> None:
        """Replace the current repository by the one that was begun."""


class Repositories(Protocol):
    """Git repositories of scopes on this machine."""

    def lock(self, scope: Scope) -> AbstractAsyncContextManager[Repository]:
        """Lock the repository of a scope, existing or not, against all local processes."""

    async def delete(self, scope: Scope) -> None:
        """Delete a scope's repository with all its objects; absent ones are ignored."""

    async def advertise_refs(self, scope: Scope) -> bytes:
        """Return the refs as git's upload-pack advertises them over HTTP. Raises NotFound."""

    async def upload_pack(self, scope: Scope, request: bytes) -> AsyncIterator[bytes]:
        """Respond to an upload-pack request. Raises NotFound, or ValidationError."""
