"""Declined offers whose content a purge replaces: the agents decline the new content too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from carrel.actions.overlay.followers import iter_followers
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.tree import Tree
from carrel.ports import Ports
from carrel.ports.erasure import StoredVersion

_OFFERING_KINDS: Final = (ScopeKind.TEMPLATE, ScopeKind.DEFAULTS)
_TREE_BATCH_SIZE: Final = 1_000
"""Agents whose trees are read together."""


def replaced_offer(reviewed: str | None, contents: Mapping[Digest, Blob]) -> str | None:
    """Reviewed offer after a purge; `contents` are new contents by old digest."""
    new = contents.get(Digest(reviewed)) if reviewed else None
    return new.digest if new else reviewed


async def find_declines(
    ports: Ports, replaced: Sequence[StoredVersion], contents: Mapping[Digest, Blob]
) -> Sequence[tuple[Write, int]]:
    """Find the agents that declined a content which a purge replaces in a lower layer.

    Returns the write of each that declines the new content, and the version it expects.
    """
    writes: dict[tuple[Scope, Path], tuple[Write, int]] = {}
    for layer, paths in _offered_paths(replaced).items():
        async for batch in iter_followers(ports, layer):
            scopes = iter(Scope(agent.tenant, ScopeKind.AGENT, agent.id) for agent in batch)
            while part := list(islice(scopes, _TREE_BATCH_SIZE)):
                for tree in await ports.trees.read(part, paths):
                    for write, version in _writes_of(tree, paths, contents):
                        writes[write.scope, write.path] = (write, version)
    return list(writes.values())


def _offered_paths(replaced: Sequence[StoredVersion]) -> Mapping[Scope, Sequence[Path]]:
    """Paths of templates and defaults among these versions, each once, by layer."""
    paths = defaultdict[Scope, dict[Path, None]](dict)
    for item in replaced:
        if item.scope.kind in _OFFERING_KINDS:
            paths[item.scope][item.version.head.path] = None
    return {layer: tuple(names) for layer, names in paths.items()}


def _writes_of(
    tree: Tree, paths: Sequence[Path], contents: Mapping[Digest, Blob]
) -> Iterator[tuple[Write, int]]:
    for path in paths:
        reviewed = tree.reviewed_offer(path)
        offer = replaced_offer(reviewed, contents)
        if offer == reviewed:
            continue
        head = tree.heads.get(path)
        entry, offset = (head.entry, head.version_offset) if head else (None, 0)
        yield Write(tree.scope, path, entry, offset, reviewed=offer), tree.version(path)
