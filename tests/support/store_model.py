"""Model of a store: dictionaries that only grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from carrel.core.identifiers import Path, Scope
from carrel.core.runs import Run

Texts = Mapping[Path, str]


@dataclass(frozen=True)
class ModelVersion:
    version: int
    revision: int
    text: str | None


@dataclass(frozen=True)
class ModelRun:
    """A run and the contents of its layers when it began."""

    run: Run
    layers: tuple[Texts, ...]


@dataclass
class Model:
    versions: dict[tuple[Scope, Path], list[ModelVersion]] = field(default_factory=dict)
    revisions: dict[Scope, int] = field(default_factory=dict)
    log: list[tuple[Scope, Path, int]] = field(default_factory=list)
    """Every effective write, in order."""
    runs: dict[str, ModelRun] = field(default_factory=dict)
    """Runs with a snapshot."""

    def version(self, scope: Scope, path: Path) -> int:
        return len(self.versions.get((scope, path), ()))

    def text(self, scope: Scope, path: Path) -> str | None:
        versions = self.versions.get((scope, path))
        return versions[-1].text if versions else None

    def write(self, writes: Mapping[tuple[Scope, Path], str | None]) -> list[int]:
        """Apply one commit and return the version of each write."""
        changing = {key for key, text in writes.items() if (text, self.text(*key)) != (None, None)}
        for scope in {scope for scope, _ in changing}:
            self.revisions[scope] = self.revisions.get(scope, 0) + 1
        for key, text in writes.items():
            if key in changing:
                number = self.version(*key) + 1
                self.versions.setdefault(key, []).append(
                    ModelVersion(number, self.revisions[key[0]], text)
                )
                self.log.append((*key, number))
        return [self.version(*key) for key in writes]

    def texts(self, scope: Scope) -> Texts:
        lines = {
            path: versions[-1].text
            for (owner, path), versions in self.versions.items()
            if owner == scope
        }
        return {path: text for path, text in lines.items() if text is not None}

    def retained(self, scope: Scope, path: Path, keep: int) -> set[int]:
        """The versions that must be retained: the newest, and those of snapshots."""
        versions = self.versions[scope, path]
        retained = {item.version for item in versions[-keep:]}
        for frozen in self.runs.values():
            for layer in frozen.run.snapshot:
                visible = [
                    s for s in versions if layer.scope == scope and s.revision <= layer.revision
                ]
                retained |= {item.version for item in visible[-1:]}
        return retained


def merge_layers(layers: Iterable[Texts]) -> Texts:
    """Overlay by copying: the farthest layer first, so that the nearest wins."""
    files: dict[Path, str] = {}
    for layer in reversed(list(layers)):
        files.update(layer)
    return files
