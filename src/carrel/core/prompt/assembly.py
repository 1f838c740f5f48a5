"""The system prompt of an agent: which of its files, in which order, and how much of each.

Pure: the same files and the same wish give the same bytes. What seldom changes comes first and what
changes daily last, so that a provider's cache of the beginning holds. A file's text is taken as it
is: a line `# MEMORY` within it is its author's, and is not told apart from a heading of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.agents.persona import persona_of
from carrel.core.errors import Conflict, ValidationError
from carrel.core.identifiers import Path
from carrel.core.markdown.fences import MARK
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.runs import Audience

POLICY: Final = tuple(map(Path, ("PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md")))
"""Never cut, and never left out where they are there."""
_IDENTITY, _SOUL, _USER, _AGENTS, MEMORY = map(
    Path, ("IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "MEMORY.md")
)
SHARED: Final = frozenset({*POLICY, _IDENTITY, _SOUL, _AGENTS})
"""All that may be told where several are listening."""

NOTES: Final = "notes/"
_RECENT: Final = "RECENT NOTES"
WORKSPACES: Final = "WORKSPACES"
_TAG: Final = "<workspace>"
TRUNCATED: Final = "\n\n[truncated]"
_GAP: Final = "\n\n"

ABSENT: Final = "there is no such file"
EMPTY: Final = "it is empty"
NOT_TEXT: Final = "it is not text"
UNSAID: Final = "it says nothing of name, emoji, vibe or creature"
PRIVATE: Final = "it is private, and others are listening"
ABOVE: Final = "it stands above already"
TWICE: Final = "it is named twice"


class PromptDocument(Struct, frozen=True):
    """A file that is there."""

    content: bytes | None
    """None where it could not be had."""
    source: str
    version: int
    problem: str = ""


NO_MEMORIES: Final[Mapping[str, PromptDocument]] = {}


class BlockFate(StrEnum):
    KEPT = "kept"
    CUT = "cut"
    LEFT_OUT = "left out"


class PromptBlock(Struct, frozen=True):
    """What became of one file that could have stood in the prompt."""

    name: str
    path: str
    kept: BlockFate
    text: str = ""
    """What stands in the prompt for it, with its heading."""
    source: str | None = None
    version: int | None = None
    reason: str = ""
    """Why it was cut or left out."""
    lasts: bool = True
    """Whether it will be so again: what could not be had may come back."""


class Prompt(Struct, frozen=True):
    text: str
    blocks: tuple[PromptBlock, ...]

    @property
    def lasts(self) -> bool:
        return all(block.lasts for block in self.blocks)


class _PromptSlot(Struct, frozen=True):
    """A place in the order, and the file that goes there."""

    name: str
    path: Path | None
    heading: str
    shown: str
    """How the path was given."""
    reason: str = ""
    """Why nothing goes there, whatever is in the file."""
    workspace: str = ""
    """The id of the attached workspace whose file it is, where it is not the agent's."""
    text: str = ""
    """What goes there, where it is no file."""


def wanted(inputs: PromptInputs) -> tuple[Path, ...]:
    """The files that a prompt is made of: no others need be read."""
    slots = _slots(inputs)
    return tuple(slot.path for slot in slots if slot.path and not (slot.reason or slot.workspace))


def remembering(inputs: PromptInputs) -> tuple[str, ...]:
    """The ids of the attached workspaces of which MEMORY.md is part of the prompt."""
    return inputs.harness.workspaces if inputs.mode is Audience.MAIN else ()


def days(inputs: PromptInputs) -> tuple[date, ...]:
    """Of which the notes are recent, newest first."""
    return (inputs.day, inputs.day - timedelta(days=1)) if inputs.day > date.min else (inputs.day,)


def note_of(day: date) -> Path:
    return Path(f"{NOTES}{day.isoformat()}.md")


def assembled(
    files: Mapping[Path, PromptDocument],
    inputs: PromptInputs,
    memories: Mapping[str, PromptDocument] = NO_MEMORIES,
) -> Prompt:
    """Of an agent's files, and of MEMORY.md of attached workspaces, by their ids.

    Raises Taken where a policy file does not fit or could not be had.
    """
    desk = _PromptBuilder(inputs, memories)
    blocks = tuple([desk.block(slot, files) for slot in _slots(inputs)])
    return Prompt(_GAP.join(block.text for block in blocks if block.text), blocks)


def _slots(inputs: PromptInputs) -> Sequence[_PromptSlot]:
    fixed = [_slot(path) for path in (*POLICY, _IDENTITY, _SOUL, _USER, _AGENTS)]
    slots = [*fixed, *_notes(inputs), _slot(MEMORY), *_attached(inputs)]
    if inputs.mode is Audience.MAIN:
        return [*slots, *_extras(inputs, {slot.path for slot in slots})]
    slots = [slot if slot.path in SHARED or slot.text else _private(slot) for slot in slots]
    extras = (doc.strip() for doc in inputs.extra_docs)
    return [*slots, *(_private(_PromptSlot(_rules(doc), None, "", doc)) for doc in extras if doc)]


def _slot(path: Path) -> _PromptSlot:
    name = path.text.removesuffix(".md")
    return _PromptSlot(name, path, f"# {name}\n", path.text)


def _private(slot: _PromptSlot) -> _PromptSlot:
    """Neither read nor told of, so that nothing of it can be told."""
    return _PromptSlot(slot.name, None, "", slot.shown, PRIVATE)


def _notes(inputs: PromptInputs) -> Iterator[_PromptSlot]:
    """Where others are listening, not even which day it is makes a difference."""
    if inputs.mode is not Audience.MAIN:
        yield _PromptSlot(_RECENT, None, "", NOTES)
        return
    for day in days(inputs):
        yield _PromptSlot(_RECENT, note_of(day), f"## {day.isoformat()}\n", note_of(day).text)


def _attached(inputs: PromptInputs) -> Iterator[_PromptSlot]:
    """What those who share a workspace remember, and how it is to be used."""
    seen: set[str] = set()
    for one in inputs.harness.attached:
        if one.workspace not in seen:
            name = f"{MEMORY.text.removesuffix('.md')} — {one.name}"
            shown = f"{one.workspace}/{MEMORY}"
            yield _PromptSlot(name, MEMORY, f"# {name}\n", shown, workspace=one.workspace)
        seen.add(one.workspace)
    if text := inputs.harness.block(inputs.mode):
        yield _PromptSlot(WORKSPACES, None, "", _TAG, text=text)


def _rules(doc: str) -> str:
    return f"RULES — {doc}"


def _extras(inputs: PromptInputs, loaded: set[Path | None]) -> Iterator[_PromptSlot]:
    named: set[Path | None] = set()
    for doc in inputs.extra_docs:
        if not (text := doc.strip()):
            continue
        name = _rules(text)
        try:
            path = Path(text)
        except ValidationError as problem:
            yield _PromptSlot(name, None, "", text, str(problem))
            continue
        reason = ABOVE if path in loaded else ""
        reason = TWICE if path in named else reason
        named.add(path)
        yield _PromptSlot(name, path, f"# {_rules(path.text)}\n", path.text, reason)


class _PromptBuilder:
    """Lays blocks one after another until there is no more room."""

    def __init__(self, inputs: PromptInputs, memories: Mapping[str, PromptDocument]) -> None:
        self._wish = inputs
        self._memories = memories
        self._room = inputs.prompt_chars
        self._begun: set[str] = set()
        """The headings over several blocks that are there."""

    def block(self, slot: _PromptSlot, files: Mapping[Path, PromptDocument]) -> PromptBlock:
        if slot.text:
            return self._told(slot)
        if slot.reason or slot.path is None:
            return PromptBlock(slot.name, slot.shown, BlockFate.LEFT_OUT, reason=slot.reason)
        found = self._memories.get(slot.workspace) if slot.workspace else files.get(slot.path)
        if found is None:
            reason = ABSENT
            return PromptBlock(slot.name, slot.shown, BlockFate.LEFT_OUT, reason=reason)
        body, reason = _body(slot.path, found)
        kept, text = BlockFate.LEFT_OUT, ""
        if not reason:
            kept, text, reason = self._laid(slot, body)
        return PromptBlock(
            *(slot.name, slot.shown, kept, text, found.source, found.version, reason),
            lasts=found.content is not None,
        )

    def _told(self, slot: _PromptSlot) -> PromptBlock:
        """What is no file is there as a whole, or not at all."""
        room = self._left(slot.text)
        if room < 0:
            reason = self._why(len(slot.text), room + len(slot.text))
            return PromptBlock(slot.name, slot.shown, BlockFate.LEFT_OUT, reason=reason)
        self._room = room
        return PromptBlock(slot.name, slot.shown, BlockFate.KEPT, slot.text)

    def _left(self, text: str) -> int:
        """The room after this."""
        begun = self._room < self._wish.prompt_chars
        return self._room - len(text) - begun * len(_GAP)

    def _laid(self, slot: _PromptSlot, body: str) -> tuple[BlockFate, str, str]:
        heading = slot.heading
        if slot.name == _RECENT and _RECENT not in self._begun:
            heading = f"# {_RECENT}\n{heading}"
        room = self._left(heading)
        most = min(self._wish.file_chars, room)
        kept, reason = BlockFate.KEPT, ""
        if len(body) > most:
            if slot.path in POLICY:
                raise _too_large(slot, body, most)
            kept, reason = BlockFate.CUT, self._why(len(body), room)
            body = _cut(body, most)
            if not body:
                return BlockFate.LEFT_OUT, "", reason
        self._begun.add(slot.name)
        self._room = room - len(body)
        return kept, heading + body, reason

    def _why(self, chars: int, room: int) -> str:
        if room < self._wish.file_chars:
            left = max(room, 0)
            return (
                f"{chars} characters, and of the {self._wish.prompt_chars} of all {left} are left"
            )
        return f"{chars} characters, and a file may have {self._wish.file_chars}"


def _body(path: Path, found: PromptDocument) -> tuple[str, str]:
    """A file's text as it would stand in the prompt, or why it has none there."""
    text, reason = "", found.problem or "it could not be had"
    if found.content is not None:
        try:
            text, reason = found.content.decode().removeprefix(MARK).strip(), EMPTY
        except UnicodeDecodeError:
            reason = NOT_TEXT
    if not text and path in POLICY and reason != EMPTY:
        raise Conflict(
            f"{path} cannot be had, and there is no prompt without it: {reason}", path=path.text
        )
    if text and path == _IDENTITY:
        text, reason = persona_of(text).line, UNSAID
    return text, "" if text else reason


def _cut(body: str, most: int) -> str:
    """The beginning, and that it is only that; nothing where there is no room for both."""
    begins = body[: max(most - len(TRUNCATED), 0)].rstrip()
    return begins + TRUNCATED if begins else ""


def _too_large(slot: _PromptSlot, body: str, most: int) -> Conflict:
    return Conflict(
        f"{slot.shown} has {len(body)} characters and there is room for {max(most, 0)}; policy is"
        " never cut, so there is no prompt until it is shorter or the limit higher",
        path=slot.shown,
        chars=len(body),
        limit=max(most, 0),
    )
