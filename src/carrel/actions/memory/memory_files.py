"""The files that memory lives in, read and written together: MEMORY.md, DREAMS.md and the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.overlay.agent_layers import Lineage, lineage_of
from carrel.actions.policy.tenant_rules import Rules
from carrel.actions.records import NO_DRAFTS, Drafts
from carrel.core.access import Actor, may_write
from carrel.core.errors import Busy, Taken, TooLarge
from carrel.core.identifiers import Digest, Moment, Path, Scope, digest
from carrel.core.memory.dream_log import DREAMS, INDEX, INDEX_TYPE, index_of, same_index
from carrel.core.memory.promoted_lines import MEMORY, Standing
from carrel.core.overlay import agent_files as overlay
from carrel.core.overlay.agent_files import Eye, Wanted
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.edit import UNCONDITIONAL
from carrel.core.store.record import Change
from carrel.core.store.tree import MARKDOWN, Applied, Commit, Full, ReceiptKey, as_seen
from carrel.ports import World

_PATHS: Final = (MEMORY, DREAMS, INDEX)
_TYPES: Final = {INDEX: INDEX_TYPE}


@dataclass(frozen=True, slots=True)
class MindFiles:
    """What an agent's three files say now, placeholders as they stand; None for what is not."""

    layers: Layers
    eye: Eye
    texts: Mapping[Path, str | None]

    @property
    def own(self) -> Scope:
        return self.layers[0].scope

    @property
    def memory(self) -> str | None:
        return self.texts[MEMORY]

    @property
    def seen(self) -> Digest | None:
        """What tells this MEMORY.md from any other."""
        return None if self.memory is None else digest(self.memory.encode())


def may_remember(actor: Actor, own: Scope) -> None:
    """Whether a caller may change what an agent remembers. Raises Forbidden.

    Its own key may, whatever files its policy lets it write, and of people owners and admins.
    """
    may_write(actor, own, MEMORY, (MEMORY.text,))


async def read(world: World, tenant: str, agent: str, rules: Rules) -> MindFiles:
    """In one reading of trees and one of bytes. Raises Missing, or Taken for what is no text."""
    lineage: Lineage = await lineage_of(world, tenant, agent)
    layers = await world.trees.read(lineage.stack, _PATHS)
    eye = replace(lineage.eye, classes=rules.policy.classes)
    shown = {path: eye.shown(path, layers) for path in _PATHS}
    bytes_of = await world.blobs.get([file.blob for file in shown.values() if file])
    texts: dict[Path, str | None] = {}
    for path, file in shown.items():
        try:
            texts[path] = bytes_of[file.blob.digest].decode() if file else None
        except UnicodeDecodeError:
            raise Taken(f"{path} is not text") from None
    return MindFiles(layers, eye, texts)


def with_index(
    files: MindFiles, memory: str, stood: Sequence[Standing], at: Moment
) -> Mapping[Path, str]:
    """The index of a MEMORY.md, if it says anything new."""
    index = index_of(memory, stood, at)
    return {} if same_index(files.texts[INDEX], index) else {INDEX: index}


async def drafts(
    world: World, rules: Rules, files: MindFiles, wanted: Mapping[Path, str]
) -> Drafts:
    """Those that differ from what is there, redacted, each an entry of the agent's own.

    Raises Forbidden where a file's class says no, and TooLarge.
    """
    redacted = {path: rules.redactor.redact(text.encode()).content for path, text in wanted.items()}
    now = {path: text.encode() for path, text in files.texts.items() if text is not None}
    changed = {path: text for path, text in redacted.items() if now.get(path) != text}
    for content in changed.values():
        rules.policy.limits_of(files.own).admit(len(content))
    blobs = await world.blobs.put(list(changed.values()))
    seen = tuple(as_seen(tree, path) for tree in files.layers for path in _PATHS)
    made = NO_DRAFTS + Drafts((), seen)
    for path, blob in zip(changed, blobs, strict=True):
        type = _TYPES.get(path, MARKDOWN)
        decided = overlay.put(files.layers, path, Wanted(blob, type), files.eye, UNCONDITIONAL)
        made += Drafts((decided.write,) if decided else ())
    return made


async def land(  # noqa: PLR0913 - a commit and all that goes with it, by name
    world: World,
    rules: Rules,
    by: str,
    why: str,
    files: Drafts,
    changes: Sequence[Change],
    *,
    at: Moment,
    receipt: ReceiptKey | None = None,
) -> None:
    """All of it or nothing. Raises Busy where anything it was decided from has changed."""
    scopes = {write.scope for write in files.writes}
    commit = Commit(
        files.writes,
        by,
        why,
        at,
        expects=files.expects,
        shelves=rules.shelves,
        changes=tuple(changes),
        quotas=tuple(rules.policy.limits_of(scope).quota(scope) for scope in scopes),
        keep=rules.policy.limits.max_versions,
        receipt=receipt,
    )
    [outcome] = await world.trees.commit([commit])
    if isinstance(outcome, Full):
        limit = outcome.quota.files
        raise TooLarge(f"the workspace may have {limit} files", maxFiles=limit)
    if not isinstance(outcome, Applied):
        raise Busy("others were changing the same memories at the same time")
