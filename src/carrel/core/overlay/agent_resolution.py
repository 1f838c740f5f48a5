"""Which layer an agent's file comes from: its own, its pins, its template or the defaults.

The nearest layer that has a path wins (`compose`), except that a pinned file comes only from the
agent or its pins, and that stale pins and outdated managed files are ignored.

A pin is an entry whose blob equals its base, an override one whose blob differs. An update is
available if the base differs from the layers below. Initial pins may be in a shared layer directly
below the agent's own (core/overlay/pin_sets.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.compose import (
    File,
    Layers,
    Workspace,
    file_etag,
    resolve,
    upstream_blob,
    upstream_tree,
)
from carrel.core.overlay.file_classes import ClassRule, FileClass, FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.blob import Blob
from carrel.core.store.entry import OFFERED_REMOVAL, Entry, Head
from carrel.core.store.tree import Tree

_RULE_PREFIX: Final = "class:"


class FileSource(StrEnum):
    """Source label of a resolved file."""

    OVERRIDE = "agent-override"
    PINNED_OVERRIDE = "agent-override-pinned"
    TEMPLATE = "template"
    PIN = "template-pinned"
    DEFAULTS = "defaults"


class AgentFileResolver(Struct, frozen=True):
    """File-class rules and placeholder values for rendering an agent's layers."""

    classes: FileClassRules = FileClassRules()
    variables: PlaceholderValues = PlaceholderValues()

    @property
    def key(self) -> str:
        """Cache key of everything rendered with this context."""
        return f"{self.variables.key}\n{self.classes.key}"

    def to_run_variables(self) -> Mapping[str, str]:
        """Serialize the context into a run's variables."""
        result = {
            name: value for name, value in asdict(self.variables).items() if value is not None
        }
        rules = enumerate(self.classes.rules)
        result |= {
            f"{_RULE_PREFIX}{index:03}": f"{rule.file_class} {rule.pattern}"
            for index, rule in rules
        }
        return result

    @staticmethod
    def is_reserved(name: str) -> bool:
        """Whether a run variable name is used by the context."""
        return name in PlaceholderValues.__struct_fields__ or name.startswith(_RULE_PREFIX)

    @classmethod
    def from_run_variables(cls, run_variables: Mapping[str, str]) -> AgentFileResolver:
        """Restore the context from a run's variables."""
        field_names = PlaceholderValues.__struct_fields__
        rules = [
            run_variables[name].partition(" ")
            for name in sorted(run_variables)
            if name.startswith(_RULE_PREFIX)
        ]
        classes = tuple(ClassRule(pattern, FileClass(kind)) for kind, _, pattern in rules)
        values = {name: run_variables[name] for name in field_names if name in run_variables}
        return cls(FileClassRules(classes), PlaceholderValues(**values))

    def resolve(self, path: Path, layers: Layers) -> File | None:
        """File of the agent at a path.

        None also for a pinned file that was never reviewed.
        """
        file = _resolve_unrendered(self.classes, path, layers)
        return None if file is None else self.render_file(file, self.variables.key)

    def compose(self, layers: Layers) -> Workspace:
        """All files of the agent, in order of path."""
        unrendered = self.inherited_files(layers) or _compose_unrendered(self.classes, layers)
        key = self.variables.key
        return Workspace({path: self.render_file(file, key) for path, file in unrendered.items()})

    def inherited_files(self, layers: Layers) -> Mapping[Path, File] | None:
        """Unrendered files shared by all agents without own files over the same trees.

        None if the agent has own files or the trees are too large to cache.
        """
        has_own_files = layers[0].heads or layers[0].tombstones
        return None if has_own_files else _inherited_files(self.classes, layers)

    def render_file(self, file: File, key: str) -> File:
        """The file with the values of its placeholders, unless it is served verbatim."""
        if is_verbatim(file):
            return file
        etag = rendered_etag(file, key)
        return File(
            *(file.head, file.entry, file.source, file.depth, etag, file.available_update),
            *(file.file_class, file.source_label, self.variables, file.own_version),
            *(file.upstream, file.is_override),
            is_removal_offered=file.is_removal_offered,
        )


# Tuples, since hashing a member of an enumeration takes longer than to compare it.
_VERBATIM_SOURCES: Final = (FileSource.PIN, FileSource.PINNED_OVERRIDE)
_OWN_SOURCES: Final = (*_VERBATIM_SOURCES, FileSource.OVERRIDE)


def is_verbatim(file: File) -> bool:
    """Whether placeholders stay: in pinned files and in own managed files."""
    managed = file.source_label is FileSource.OVERRIDE and file.file_class is FileClass.MANAGED
    return managed or file.source_label in _VERBATIM_SOURCES


def is_own_file(file: File) -> bool:
    """Whether the file is the agent's own or its pin, not inherited."""
    return file.source_label in _OWN_SOURCES


def rendered_etag(file: File, key: str) -> str:
    """ETag of a file rendered with the values of this key."""
    return f'{file.etag[:-1]}.{key}"'


def _resolve_unrendered(classes: FileClassRules, path: Path, layers: Layers) -> File | None:
    """File of an agent before placeholders are filled."""
    return resolve_as(classes.class_of(path), path, layers)


def resolve_as(file_class: FileClass, path: Path, layers: Layers) -> File | None:
    """File of an agent, of a path of this class, before placeholders are filled."""
    if file_class is FileClass.PINNED:
        return _resolve_pinned(path, layers)
    file = resolve(path, layers_without_pins(layers))
    if file and file.depth == 0 and _is_ignored_override(file, file_class):
        file = resolve(path, (_without_entry(layers[0], path), *upstream_layers(layers)))
    if file is None:
        return None
    is_own = file.source.kind is ScopeKind.AGENT
    label = FileSource.OVERRIDE if is_own else FileSource(file.source.kind)
    if not is_own:
        return replace(file, file_class=file_class, source_label=label)
    return replace(
        file,
        file_class=file_class,
        source_label=label,
        upstream=_upstream_kind(path, layers),
        is_override=_is_override(file_class, path, layers),
    )


def _upstream_kind(path: Path, layers: Layers) -> ScopeKind | None:
    """Layer below the agent's own that has a path."""
    tree = upstream_tree(path, upstream_layers(layers))
    return tree.scope.kind if tree else None


def _without_entry(tree: Tree, path: Path) -> Tree:
    """Tree in which a path is deleted, at the same version."""
    return replace(tree, heads={path: replace(tree.heads[path], entry=None)})


def _is_ignored_override(override: File, file_class: FileClass) -> bool:
    """Whether the agent's own entry is ignored.

    This applies to a pin of a path that is live now, and to a managed file whose source changed
    below: until it is written again, the new source is rendered on read.
    """
    if file_class is FileClass.MANAGED:
        return override.available_update is not None
    return is_pin(override.entry)


def _compose_unrendered(classes: FileClassRules, layers: Layers) -> Mapping[Path, File]:
    paths = sorted({path for tree in layers for path in tree.heads})
    return {path: file for path in paths if (file := _resolve_unrendered(classes, path, layers))}


_MAX_CACHED_FILES: Final = 500
"""Larger trees are not cached."""


class _SharedLayers:
    """Layers that equal others over the same trees, except for the agent's own."""

    __slots__ = ("_ids", "layers")

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self._ids = tuple(map(id, layers[1:]))
        """Stay valid while `layers` refers to the trees."""

    def __hash__(self) -> int:
        return hash(self._ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SharedLayers) and self._ids == other._ids


def _inherited_files(classes: FileClassRules, layers: Layers) -> Mapping[Path, File] | None:
    if sum([len(tree.heads) for tree in layers[1:]]) > _MAX_CACHED_FILES:
        return None
    return _compose_inherited(classes, _SharedLayers(layers))


@lru_cache(maxsize=64)
def _compose_inherited(classes: FileClassRules, shared: _SharedLayers) -> Mapping[Path, File]:
    return _compose_unrendered(classes, shared.layers)


def upstream_layers(layers: Layers) -> Layers:
    """Layers that an agent inherits from: without its own and its pins."""
    return layers[2:] if len(layers) > 1 and layers[1].scope.kind is ScopeKind.PINS else layers[1:]


def layers_without_pins(layers: Layers) -> Layers:
    """Layers that decide a file that is not pinned."""
    return (*layers[:1], *upstream_layers(layers))


def agent_entry(path: Path, layers: Layers) -> Entry | None:
    """The agent's own entry of a live file; None for a pin left from an earlier class."""
    entry = layers[0].entry(path)
    return None if entry is None or is_pin(entry) else entry


def overridden_paths(classes: FileClassRules, layers: Layers) -> Sequence[Path]:
    """Paths that the agent overrides.

    Excludes files that no layer below has, and managed files.
    """
    return [path for path in layers[0].heads if _is_override(classes.class_of(path), path, layers)]


def _is_override(file_class: FileClass, path: Path, layers: Layers) -> bool:
    entry = agent_entry(path, layers)
    if entry is None or file_class is FileClass.MANAGED:
        return False
    has_review = file_class is FileClass.PINNED and entry.base is not None
    return has_review or upstream_blob(path, upstream_layers(layers)) is not None


def is_pin(entry: Entry) -> bool:
    return entry.base is not None and entry.blob == entry.base


def pinned_head(path: Path, layers: Layers) -> tuple[Tree, Head | None]:
    """Head of a pinned file and its layer.

    The agent's own takes precedence over its pin set, also after an accepted removal.
    """
    agent_tree = layers[0]
    if (
        agent_tree.entry(path) is None
        and agent_tree.reviewed_offer(path) is None
        and len(layers) > 1
        and layers[1].scope.kind is ScopeKind.PINS
    ):
        return layers[1], layers[1].heads.get(path)
    return agent_tree, agent_tree.heads.get(path)


def pinned_entry(path: Path, layers: Layers) -> Entry | None:
    _, head = pinned_head(path, layers)
    return head.entry if head else None


def _resolve_pinned(path: Path, layers: Layers) -> File | None:
    tree, head = pinned_head(path, layers)
    if head is None or head.entry is None:
        return None
    entry = head.entry
    latest = upstream_blob(path, upstream_layers(layers))
    awaits_review = latest != entry.base and head.reviewed != offered_digest(latest)
    update = latest if awaits_review else None
    own_version = 0 if tree is layers[0] else layers[0].stack_version(path)
    version = own_version + head.stack_version
    tag = file_etag(version, tree.scope, single_layer=len(layers) == 1, has_update=awaits_review)
    label = FileSource.PIN if is_pin(entry) else FileSource.PINNED_OVERRIDE
    return File(
        *(head, entry, tree.scope, 0, tag, update, FileClass.PINNED, label),
        own_version=own_version,
        upstream=_upstream_kind(path, layers),
        is_override=_is_override(FileClass.PINNED, path, layers),
        is_removal_offered=awaits_review and latest is None,
    )


def offered_digest(latest: Blob | None) -> str:
    """Digest that identifies what the layers below offer for a pinned file."""
    return OFFERED_REMOVAL if latest is None else latest.digest


def lower_scopes(stack: Stack, file_class: FileClass) -> Stack:
    """Scopes below the agent's own that decide a file of this class."""
    pinned = file_class is FileClass.PINNED
    return tuple(scope for scope in stack[1:] if (scope.kind is ScopeKind.PINS) == pinned)


def file_from_version(
    stack: Stack,
    resolver: AgentFileResolver | None,
    head: Head,
    scope: Scope,
    own_version: int = 0,
) -> File:
    """File of one version of a layer, as the stack serves it. It must not be a deletion."""
    assert head.entry
    version = own_version + head.stack_version
    etag = file_etag(version, scope, single_layer=len(stack) == 1)
    file = File(head, head.entry, scope, stack.index(scope), etag, own_version=own_version)
    if resolver is None:
        return file
    file_class = resolver.classes.class_of(file.path)
    if file_class is FileClass.PINNED:
        label = FileSource.PIN if is_pin(head.entry) else FileSource.PINNED_OVERRIDE
    else:
        label = FileSource.OVERRIDE if scope == stack[0] else FileSource(scope.kind)
    labelled = replace(file, file_class=file_class, source_label=label)
    return resolver.render_file(labelled, resolver.variables.key)


def explain_resolution(path: Path, layers: Layers, file: File | None) -> str:
    """Explain the source of a pinned or managed file."""
    if file is None:
        awaits_review = upstream_blob(path, upstream_layers(layers)) is not None
        return "pinned; awaits its first review" if awaits_review else "no layer has it"
    match file.source_label:
        case FileSource.PIN:
            explanation = "pinned: the reviewed version"
        case FileSource.PINNED_OVERRIDE:
            explanation = "pinned; overridden for this agent"
        case FileSource.OVERRIDE:
            return "managed: written from the profile of the paired human"
        case _:
            if layers[0].entry(path):
                return f"managed; {file.source_label} changed since it was written from the profile"
            return f"managed; without a paired human, {file.source_label} applies"
    return explanation if not file.has_update else f"{explanation}; an update awaits review"
