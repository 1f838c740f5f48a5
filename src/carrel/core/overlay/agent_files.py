"""An agent's files over its template's over the defaults: what is shown, and how it may change.

An entry says it all: a pin is one whose blob equals its base, an override one whose blob differs,
and an update is offered where the base differs from what lies beneath now. The pins that an agent
was made with may stand in a layer right beneath its own, shared with others (core/pinset.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path, ScopeKind
from carrel.core.overlay.compose import File, Layers, Workspace, file_etag, resolve, upstream_blob
from carrel.core.overlay.edit import PlannedWrite, WriteCondition
from carrel.core.overlay.file_classes import ClassRule, FileClass, FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.tree import (
    MARKDOWN,
    Blob,
    Entry,
    Head,
    PathFree,
    Tree,
    Write,
    expect_unchanged,
)

_RULE: Final = "class:"


class FileSource(StrEnum):
    """Where what is shown comes from."""

    OVERRIDE = "agent-override"
    PINNED_OVERRIDE = "agent-override-pinned"
    TEMPLATE = "template"
    PIN = "template-pinned"
    DEFAULTS = "defaults"


class RenderContext(Struct, frozen=True):
    """With whose eyes an agent's workspace is seen: its tenant's classes, its own variables."""

    classes: FileClassRules = FileClassRules()
    variables: PlaceholderValues = PlaceholderValues()

    @property
    def key(self) -> str:
        """Changes when anything does that is seen differently through it."""
        return f"{self.variables.key}\n{self.classes.key}"

    def to_run_variables(self) -> Mapping[str, str]:
        """All of it as a run keeps it."""
        said = {name: value for name, value in asdict(self.variables).items() if value is not None}
        rules = enumerate(self.classes.rules)
        said |= {f"{_RULE}{at:03}": f"{rule.file_class} {rule.pattern}" for at, rule in rules}
        return said

    @staticmethod
    def is_reserved(name: str) -> bool:
        """Whether a word of this name is the eye's own, and so for nobody else to say."""
        return name in PlaceholderValues.__struct_fields__ or name.startswith(_RULE)

    @classmethod
    def from_run_variables(cls, words: Mapping[str, str]) -> RenderContext:
        """The same again, from what a run has kept."""
        known = PlaceholderValues.__struct_fields__
        rules = [words[name].partition(" ") for name in sorted(words) if name.startswith(_RULE)]
        classes = tuple(ClassRule(pattern, FileClass(kind)) for kind, _, pattern in rules)
        said = {name: words[name] for name in known if name in words}
        return cls(FileClassRules(classes), PlaceholderValues(**said))

    def resolve(self, path: Path, layers: Layers) -> File | None:
        """What an agent has at a path. A pinned file that was never reviewed is not there."""
        file = _unrendered(self.classes, path, layers)
        return None if file is None else self._rendered(file, self.variables.key)

    def compose(self, layers: Layers) -> Workspace:
        """Everything that an agent has, in order of path."""
        plain = self.inherited_files(layers) or _all_unrendered(self.classes, layers)
        key = self.variables.key
        return Workspace({path: self._rendered(file, key) for path, file in plain.items()})

    def inherited_files(self, layers: Layers) -> Mapping[Path, File] | None:
        """What all have, but for their names, who have nothing of their own over the very same
        trees: the very same for all of them. None for an agent that has, or has much."""
        return None if layers[0].heads else _inherited(self.classes, layers)

    def _rendered(self, file: File, key: str) -> File:
        if is_verbatim(file):
            return file
        etag = rendered_etag(file, key)
        return File(
            *(file.head, file.entry, file.source, file.depth, etag, file.upstream),
            *(file.file_class, file.origin, self.variables),
        )


_VERBATIM: Final = frozenset({FileSource.PIN, FileSource.PINNED_OVERRIDE})


def is_verbatim(file: File) -> bool:
    """Whether nothing is filled in: pinned files and managed ones of an agent's own stay as is."""
    managed = file.origin is FileSource.OVERRIDE and file.file_class is FileClass.MANAGED
    return managed or file.origin in _VERBATIM


def rendered_etag(file: File, key: str) -> str:
    """The tag of a file in which placeholders are filled in by the variables of this key."""
    return f'{file.etag[:-1]}.{key}"'


def _unrendered(classes: FileClassRules, path: Path, layers: Layers) -> File | None:
    """What an agent has at a path, whoever it is."""
    file_class = classes.class_of(path)
    if file_class is FileClass.PINNED:
        return _pinned(path, layers)
    file = resolve(path, layers_without_pins(layers))
    if file and file.depth == 0 and _is_ignored_override(file, file_class):
        file = resolve(path, (replace(layers[0], heads={}), *upstream(layers)))
    if file is None:
        return None
    own = file.source.kind is ScopeKind.AGENT
    origin = FileSource.OVERRIDE if own else FileSource(file.source.kind)
    return replace(file, file_class=file_class, origin=origin)


def _is_ignored_override(own: File, file_class: FileClass) -> bool:
    """Whether what an agent has of its own says nothing here.

    So it is with a pin of what is live, and with a managed file whose source has been replaced
    beneath: until it is written again, what is there now is filled in as it is read.
    """
    if file_class is FileClass.MANAGED:
        return own.upstream is not None
    return is_pin(own.entry)


def _all_unrendered(classes: FileClassRules, layers: Layers) -> Mapping[Path, File]:
    paths = sorted({path for tree in layers for path in tree.heads})
    return {path: file for path in paths if (file := _unrendered(classes, path, layers))}


_SHARED: Final[dict[Any, tuple[Layers, Mapping[Path, File]]]] = {}
_MOST_SHARED: Final = 64
_FEW: Final = 500
"""Files up to which it is worth its memory."""


def _inherited(classes: FileClassRules, layers: Layers) -> Mapping[Path, File] | None:
    """Known by the trees themselves, which are held for as long as their names in here are."""
    beneath = tuple(layers[1:])
    if sum([len(tree.heads) for tree in beneath]) > _FEW:
        return None
    key = (classes.rules, *map(id, beneath))
    known = _SHARED.get(key)
    if known is None:
        if len(_SHARED) >= _MOST_SHARED:
            _SHARED.clear()
        known = _SHARED[key] = (beneath, _all_unrendered(classes, layers))
    return known[1]


def upstream(layers: Layers) -> Layers:
    """The layers that an agent inherits from: not its own, and not its pins."""
    return layers[2:] if len(layers) > 1 and layers[1].scope.kind is ScopeKind.PINS else layers[1:]


def layers_without_pins(layers: Layers) -> Layers:
    """The layers that decide of a file that is not pinned."""
    return (*layers[:1], *upstream(layers))


def own_entry(path: Path, layers: Layers) -> Entry | None:
    """What an agent says itself of a live file. A pin from when it was pinned says nothing more."""
    entry = layers[0].entry(path)
    return None if entry is None or is_pin(entry) else entry


def overridden(classes: FileClassRules, layers: Layers) -> Sequence[Path]:
    """Where an agent has a text of its own in place of another.

    A file of which nothing lies beneath overrides none, and a managed one is not of its own making.
    """
    return [path for path in layers[0].heads if _overrides(classes.class_of(path), path, layers)]


def _overrides(file_class: FileClass, path: Path, layers: Layers) -> bool:
    entry = own_entry(path, layers)
    if entry is None or file_class is FileClass.MANAGED:
        return False
    reviewed = file_class is FileClass.PINNED and entry.base is not None
    return reviewed or upstream_blob(path, upstream(layers)) is not None


def is_pin(entry: Entry) -> bool:
    return entry.blob == entry.base


def held_head(path: Path, layers: Layers) -> tuple[Tree, Head | None]:
    """What an agent holds of a pinned file, and in which layer: its own goes before its pins."""
    own = layers[0]
    if own.entry(path) is None and len(layers) > 1 and layers[1].scope.kind is ScopeKind.PINS:
        return layers[1], layers[1].heads.get(path)
    return own, own.heads.get(path)


def held_entry(path: Path, layers: Layers) -> Entry | None:
    _, head = held_head(path, layers)
    return head.entry if head else None


def _pinned(path: Path, layers: Layers) -> File | None:
    tree, head = held_head(path, layers)
    if head is None or head.entry is None:
        return None
    entry = head.entry
    latest = upstream_blob(path, upstream(layers))
    newer = latest if latest is not None and latest != entry.base else None
    tag = file_etag(head.version, tree.scope, alone=len(layers) == 1, newer=newer)
    origin = FileSource.PIN if is_pin(entry) else FileSource.PINNED_OVERRIDE
    return File(head, entry, tree.scope, 0, tag, newer, FileClass.PINNED, origin)


def explain_resolution(path: Path, layers: Layers, shown: File | None) -> str:
    """Why an agent is shown what it is of a file that does not simply follow."""
    if shown is None:
        waits = upstream_blob(path, upstream(layers)) is not None
        return "it is pinned, and waits for its first review" if waits else "no layer has it"
    match shown.origin:
        case FileSource.PIN:
            told = "it is pinned: this is what was reviewed"
        case FileSource.PINNED_OVERRIDE:
            told = "it is pinned, and overridden for this agent alone"
        case FileSource.OVERRIDE:
            return "it is managed: written from the profile of the paired human"
        case _:
            if layers[0].entry(path):
                return f"it is managed, and {shown.origin} is newer than what was written from it"
            return f"it is managed; until there is a human, {shown.origin} decides"
    return told if shown.upstream is None else f"{told}; something newer waits for a review"


class NewContent(Struct, frozen=True):
    """What somebody wants to write."""

    blob: Blob
    type: str = MARKDOWN
    accepted: bool = False
    """They know that the file is pinned."""


def put(
    layers: Layers,
    path: Path,
    wanted: NewContent,
    render_context: RenderContext,
    condition: WriteCondition,
) -> PlannedWrite | None:
    """Write an agent's own file; None where that is what it has already, inherited.

    Raises Stale, or Forbidden for a managed file and, unless accepted, for a pinned one.
    """
    file_class = render_context.classes.check_path(path)
    condition.check(path, render_context.resolve(path, layers))
    if file_class is FileClass.MANAGED:
        raise Forbidden(f"{path} is managed: it is written from the profile of the paired human")
    if file_class is FileClass.PINNED:
        if not wanted.accepted:
            raise Forbidden(f"{path} is pinned: changing it here needs acceptTemplateUpdate: true")
        known = held_entry(path, layers)
        base = known.base if known else None
        return plan_write(layers, path, Entry(wanted.blob, base, wanted.type))
    beneath = upstream_blob(path, upstream(layers))
    if wanted.blob == beneath:
        own = layers[0].entry(path)
        return None if own is None else plan_write(layers, path, None)
    return plan_write(layers, path, Entry(wanted.blob, beneath, wanted.type))


def delete(
    layers: Layers, path: Path, render_context: RenderContext, condition: WriteCondition
) -> PlannedWrite:
    """Go back to what is inherited; for a pinned file, to what was reviewed last.

    Raises Stale, Missing where there is nothing of the agent's own, Forbidden for a managed file.
    """
    file_class = render_context.classes.check_path(path)
    condition.check(path, render_context.resolve(path, layers))
    if file_class is FileClass.MANAGED:
        raise Forbidden(f"{path} is managed: it is written from the profile of the paired human")
    pinned = file_class is FileClass.PINNED
    entry = held_entry(path, layers) if pinned else own_entry(path, layers)
    if entry is None:
        raise NotFound(f"there is no {path} here to delete")
    if not pinned or entry.base is None:
        return plan_write(layers, path, None)
    if entry.blob == entry.base:
        raise NotFound(f"{path} is as it was reviewed: there is nothing to take back")
    return plan_write(layers, path, Entry(entry.base, entry.base, entry.type))


def plan_write(layers: Layers, path: Path, entry: Entry | None) -> PlannedWrite:
    """Everything that was read becomes an expectation.

    What the agent has already of its own, or as a pin, has its place.
    """
    seen = tuple(expect_unchanged(tree, path) for tree in layers)
    is_new = entry is not None and held_entry(path, layers) is None
    room = (PathFree(path, tuple(tree.scope for tree in layers)),) if is_new else ()
    return PlannedWrite(seen, Write(layers[0].scope, path, entry), room)
