"""Contents that are served differently when the file classes change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from carrel.core.identifiers import Path, ScopeKind
from carrel.core.overlay.agent_resolution import AgentFileResolver, is_own_file, is_verbatim
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.path_spelling import fold_path, path_prefixes
from carrel.core.store.blob import Blob


class RuleChange(Struct, frozen=True):
    """A change of class rules, and how the paths that it protects are spelled."""

    before: FileClassRules
    after: FileClassRules
    spellings: Mapping[str, frozenset[str]]
    """Spellings of newly protected paths and their parents, as other file systems compare them."""

    def concerns(self, path: Path) -> bool:
        """Whether a path may get another class or collide with one that becomes protected."""
        before, after = self.before, self.after
        if before.class_of(path) is not after.class_of(path):
            return True
        if after.find_lookalike(path) and not before.find_lookalike(path):
            return True
        return any(
            self.spellings.get(fold_path(prefix), {prefix}) != {prefix}
            for prefix in path_prefixes(path.text)
        )


def rule_change(before: FileClassRules, after: FileClassRules, paths: Iterable[Path]) -> RuleChange:
    """Change of class rules over existing paths."""
    spellings: dict[str, set[str]] = {}
    for path in paths:
        if after.class_of(path) is FileClass.LIVE or before.class_of(path) is not FileClass.LIVE:
            continue
        for prefix in path_prefixes(path.text):
            spellings.setdefault(fold_path(prefix), set()).add(prefix)
    frozen = {folded: frozenset(texts) for folded, texts in spellings.items()}
    return RuleChange(before, after, frozen)


def find_new_collisions(
    before: FileClassRules, after: FileClassRules, layers: Layers
) -> Iterator[Path]:
    """Live paths of a stack that would collide with a protected path in letter case."""
    paths = {path for tree in layers for path in tree.heads if tree.entry(path)}
    for protected, other in after.find_collisions(paths):
        if not before.collide(protected, other):
            yield from (protected, other)
    for path in paths:
        if after.find_lookalike(path) and not before.find_lookalike(path):
            yield path


def blobs_no_longer_rendered(
    before: FileClassRules, after: FileClassRules, layers: Layers
) -> Iterator[tuple[Path, Blob]]:
    """Contents whose placeholders are filled now and would be served verbatim.

    `layers` are those of an agent, or one shared layer, where every new agent would pin them.
    """
    is_agent = layers[0].scope.kind is ScopeKind.AGENT
    resolver = AgentFileResolver(before)
    for path in sorted({path for tree in layers for path in tree.heads}):
        new_class = after.class_of(path)
        if new_class is FileClass.LIVE or new_class is before.class_of(path):
            continue
        if not is_agent:
            entry = layers[0].entry(path)
            if entry and new_class is FileClass.PINNED:
                yield path, entry.blob
            continue
        file = resolver.resolve(path, layers)
        if file and not is_verbatim(file) and (new_class is FileClass.PINNED or is_own_file(file)):
            yield path, file.blob
