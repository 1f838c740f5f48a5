"""Assembly of an agent's system prompt: order, selection and truncation.

Deterministic: equal files and inputs give equal bytes. Stable blocks come first and daily ones
last, so that a provider's prefix cache stays valid. File texts are inserted unchanged: a line `#
MEMORY` in a file is not distinguished from a heading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from carrel.core.agents.persona import parse_persona
from carrel.core.errors import Conflict, ValidationError
from carrel.core.identifiers import Path
from carrel.core.markdown.fences import BYTE_ORDER_MARK
from carrel.core.outages import CorruptContent
from carrel.core.prompt.blocks import BlockStatus, PromptBlock
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.skill_blocks import SKILLS_BLOCK, build_skill_blocks
from carrel.core.runs import Audience
from carrel.core.sessions.shared_session_visibility import POLICY_PATHS, is_visible
from carrel.core.skills.prompt_index import PromptSkill
from carrel.core.skills.skill_definition import SKILLS_PREFIX
from carrel.core.skills.skill_folder import are_skills_visible

_IDENTITY, _SOUL, _USER, _AGENTS, MEMORY = map(
    Path, ("IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "MEMORY.md")
)

NOTES_PREFIX: Final = "notes/"
_RECENT_NOTES: Final = "RECENT NOTES"
WORKSPACES_BLOCK: Final = "WORKSPACES"
_WORKSPACES_LABEL: Final = "<workspace>"
TRUNCATION_MARKER: Final = "\n\n[truncated]"
_SEPARATOR: Final = "\n\n"

REASON_ABSENT: Final = "no such file"
REASON_EMPTY: Final = "empty"
REASON_NOT_TEXT: Final = "not text"
REASON_NO_PERSONA: Final = "no name, emoji, vibe or creature"
REASON_PRIVATE: Final = "private, and the audience is shared"
REASON_ALREADY_INCLUDED: Final = "already included above"
REASON_DUPLICATE: Final = "listed twice"


class DamagedPolicyFile(CorruptContent):
    """A policy file of a prompt is damaged."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


class PromptDocument(Struct, frozen=True):
    """An existing file."""

    content: bytes | None
    """None if it could not be loaded."""
    source: str
    version: int
    problem: str = ""
    is_damaged: bool = False
    """Whether its stored bytes are lost."""


NO_MEMORIES: Final[Mapping[str, PromptDocument]] = {}


class Prompt(Struct, frozen=True):
    text: str
    blocks: tuple[PromptBlock, ...]

    @property
    def is_cacheable(self) -> bool:
        return all(block.is_cacheable for block in self.blocks)


class _PromptSlot(Struct, frozen=True):
    """A position in the prompt and its file."""

    name: str
    path: Path | None
    heading: str
    display_path: str
    """Path as configured."""
    reason: str = ""
    """Why the slot stays empty, independent of the file."""
    workspace: str = ""
    """Id of the attached workspace that has the file; empty for the agent's."""
    text: str = ""
    """Generated text, if the slot is not a file."""
    lists_skills: bool = False


def prompt_paths(inputs: PromptInputs) -> tuple[Path, ...]:
    """Files that the prompt is made of; no others need to be read."""
    slots = _prompt_slots(inputs)
    return tuple(slot.path for slot in slots if slot.path and not (slot.reason or slot.workspace))


def memory_workspace_ids(inputs: PromptInputs) -> tuple[str, ...]:
    """Ids of the attached workspaces whose MEMORY.md is part of the prompt."""
    visible = is_visible(MEMORY, inputs.mode, is_shared_workspace=True)
    return inputs.workspace_notes.workspace_ids if visible else ()


def note_days(inputs: PromptInputs) -> tuple[date, ...]:
    """Days of the recent notes, newest first."""
    return (inputs.day, inputs.day - timedelta(days=1)) if inputs.day > date.min else (inputs.day,)


def note_path(day: date) -> Path:
    return Path(f"{NOTES_PREFIX}{day.isoformat()}.md")


def build_prompt(
    files: Mapping[Path, PromptDocument],
    inputs: PromptInputs,
    memories: Mapping[str, PromptDocument] = NO_MEMORIES,
    skills: Sequence[PromptSkill] = (),
) -> Prompt:
    """Assemble the prompt from an agent's files.

    `memories` are MEMORY.md of attached workspaces by id, `skills` those of the agent.

    Raises Conflict if a policy file does not fit or is not text, DamagedPolicyFile if damaged.
    """
    builder = _PromptBuilder(inputs, memories)
    blocks: list[PromptBlock] = []
    for slot in _prompt_slots(inputs):
        if slot.lists_skills:
            blocks += builder.build_skill_blocks(skills)
        else:
            blocks.append(builder.build_block(slot, files))
    return Prompt(_SEPARATOR.join(block.text for block in blocks if block.text), tuple(blocks))


def _prompt_slots(inputs: PromptInputs) -> Sequence[_PromptSlot]:
    fixed = [_file_slot(path) for path in (*POLICY_PATHS, _IDENTITY, _SOUL, _USER, _AGENTS)]
    skills = _PromptSlot(SKILLS_BLOCK, None, "", SKILLS_PREFIX, lists_skills=True)
    slots = [*fixed, skills, *_note_slots(inputs), _file_slot(MEMORY), *_workspace_slots(inputs)]
    if inputs.mode is Audience.MAIN:
        return [*slots, *_extra_slots(inputs, {slot.path for slot in slots})]
    slots = [slot if _is_shared(slot) else _private_slot(slot) for slot in slots]
    extras = (doc.strip() for doc in inputs.extra_docs)
    return [
        *slots,
        *(_private_slot(_PromptSlot(_extra_name(doc), None, "", doc)) for doc in extras if doc),
    ]


def _file_slot(path: Path) -> _PromptSlot:
    name = path.text.removesuffix(".md")
    return _PromptSlot(name, path, f"# {name}\n", path.text)


def _is_shared(slot: _PromptSlot) -> bool:
    """Whether a shared audience may see the slot; generated text has nothing private."""
    if slot.lists_skills:
        return are_skills_visible(Audience.SHARED)
    if slot.path is None:
        return bool(slot.text)
    return is_visible(slot.path, Audience.SHARED, is_shared_workspace=bool(slot.workspace))


def _private_slot(slot: _PromptSlot) -> _PromptSlot:
    """Empty slot: the file is not read."""
    return _PromptSlot(slot.name, None, "", slot.display_path, REASON_PRIVATE)


def _note_slots(inputs: PromptInputs) -> Iterator[_PromptSlot]:
    """A prompt for a shared audience must not depend on the date."""
    if inputs.mode is not Audience.MAIN:
        yield _PromptSlot(_RECENT_NOTES, None, "", NOTES_PREFIX)
        return
    for day in note_days(inputs):
        yield _PromptSlot(
            _RECENT_NOTES, note_path(day), f"## {day.isoformat()}\n", note_path(day).text
        )


def _workspace_slots(inputs: PromptInputs) -> Iterator[_PromptSlot]:
    """MEMORY.md of each attached workspace, then the workspace notes."""
    workspace_ids: set[str] = set()
    for note in inputs.workspace_notes.attached:
        if note.workspace not in workspace_ids:
            name = f"{MEMORY.text.removesuffix('.md')} — {note.name}"
            display_path = f"{note.workspace}/{MEMORY}"
            yield _PromptSlot(name, MEMORY, f"# {name}\n", display_path, workspace=note.workspace)
        workspace_ids.add(note.workspace)
    if text := inputs.workspace_notes.render(inputs.mode):
        yield _PromptSlot(WORKSPACES_BLOCK, None, "", _WORKSPACES_LABEL, text=text)


def _extra_name(doc: str) -> str:
    return f"RULES — {doc}"


def _extra_slots(inputs: PromptInputs, earlier_paths: set[Path | None]) -> Iterator[_PromptSlot]:
    extra_paths: set[Path | None] = set()
    for doc in inputs.extra_docs:
        if not (text := doc.strip()):
            continue
        name = _extra_name(text)
        try:
            path = Path(text)
        except ValidationError as problem:
            yield _PromptSlot(name, None, "", text, str(problem))
            continue
        reason = REASON_ALREADY_INCLUDED if path in earlier_paths else ""
        reason = REASON_DUPLICATE if path in extra_paths else reason
        extra_paths.add(path)
        yield _PromptSlot(name, path, f"# {_extra_name(path.text)}\n", path.text, reason)


class _PromptBuilder:
    """Adds blocks until the character limit is reached."""

    def __init__(self, inputs: PromptInputs, memories: Mapping[str, PromptDocument]) -> None:
        self._inputs = inputs
        self._memories = memories
        self._remaining_chars = inputs.prompt_chars
        self._headings: set[str] = set()
        """Names of the blocks written so far."""

    def build_block(self, slot: _PromptSlot, files: Mapping[Path, PromptDocument]) -> PromptBlock:
        if slot.text:
            return self._text_block(slot)
        if slot.reason or slot.path is None:
            return PromptBlock(
                slot.name, slot.display_path, BlockStatus.OMITTED, reason=slot.reason
            )
        document = self._memories.get(slot.workspace) if slot.workspace else files.get(slot.path)
        if document is None:
            reason = REASON_ABSENT
            return PromptBlock(slot.name, slot.display_path, BlockStatus.OMITTED, reason=reason)
        body, reason = _document_text(slot.path, document)
        status, text = BlockStatus.OMITTED, ""
        if not reason:
            status, text, reason = self._fit_block(slot, body)
        return PromptBlock(
            *(
                slot.name,
                slot.display_path,
                status,
                text,
                document.source,
                document.version,
                reason,
            ),
            is_cacheable=document.content is not None,
        )

    def _text_block(self, slot: _PromptSlot) -> PromptBlock:
        """Generated text is included completely or not at all."""
        remaining = self._remaining_after(slot.text)
        if remaining < 0:
            reason = self._limit_reason(len(slot.text), remaining + len(slot.text))
            return PromptBlock(slot.name, slot.display_path, BlockStatus.OMITTED, reason=reason)
        self._remaining_chars = remaining
        return PromptBlock(slot.name, slot.display_path, BlockStatus.INCLUDED, slot.text)

    def build_skill_blocks(self, skills: Sequence[PromptSkill]) -> Sequence[PromptBlock]:
        """Block of the index of skills, then the outcome for each; nothing without skills."""
        remaining = self._remaining_after("")
        blocks = build_skill_blocks(skills, self._inputs.skills_chars, remaining)
        if any(block.text for block in blocks):
            self._remaining_chars = remaining - len(blocks[0].text)
        return blocks

    def _remaining_after(self, text: str) -> int:
        """Characters that remain after this text."""
        has_blocks = self._remaining_chars < self._inputs.prompt_chars
        return self._remaining_chars - len(text) - has_blocks * len(_SEPARATOR)

    def _fit_block(self, slot: _PromptSlot, body: str) -> tuple[BlockStatus, str, str]:
        heading = slot.heading
        if slot.name == _RECENT_NOTES and _RECENT_NOTES not in self._headings:
            heading = f"# {_RECENT_NOTES}\n{heading}"
        remaining = self._remaining_after(heading)
        limit = min(self._inputs.file_chars, remaining)
        status, reason = BlockStatus.INCLUDED, ""
        if len(body) > limit:
            if slot.path in POLICY_PATHS:
                raise _too_large_error(slot, body, limit)
            status, reason = BlockStatus.TRUNCATED, self._limit_reason(len(body), remaining)
            body = _truncate(body, limit)
            if not body:
                return BlockStatus.OMITTED, "", reason
        self._headings.add(slot.name)
        self._remaining_chars = remaining - len(body)
        return status, heading + body, reason

    def _limit_reason(self, chars: int, remaining: int) -> str:
        if remaining < self._inputs.file_chars:
            available = max(remaining, 0)
            total = self._inputs.prompt_chars
            return f"{chars} characters; of the {total} in total {available} remain"
        return f"{chars} characters; the limit per file is {self._inputs.file_chars}"


def _document_text(path: Path, document: PromptDocument) -> tuple[str, str]:
    """Text of a file as inserted into the prompt, or the reason why there is none."""
    text, reason = "", document.problem or "it could not be loaded"
    if document.content is not None:
        try:
            file = document.content.decode()
            text, reason = file.removeprefix(BYTE_ORDER_MARK).strip(), REASON_EMPTY
        except UnicodeDecodeError:
            reason = REASON_NOT_TEXT
    if not text and path in POLICY_PATHS and reason != REASON_EMPTY:
        message = f"{path} is required and could not be loaded: {reason}"
        if document.is_damaged:
            raise DamagedPolicyFile(message, path)
        raise Conflict(message, path=path.text)
    if text and path == _IDENTITY:
        text, reason = parse_persona(file).line, REASON_NO_PERSONA
    return text, "" if text else reason


def _truncate(body: str, limit: int) -> str:
    """Beginning of the text with a marker; empty if the limit is too small for both."""
    prefix = body[: max(limit - len(TRUNCATION_MARKER), 0)].rstrip()
    return prefix + TRUNCATION_MARKER if prefix else ""


def _too_large_error(slot: _PromptSlot, body: str, limit: int) -> Conflict:
    return Conflict(
        f"{slot.display_path} has {len(body)} characters; at most {max(limit, 0)} fit. Policy"
        " files are never truncated: shorten the file or raise the limit",
        path=slot.display_path,
        chars=len(body),
        limit=max(limit, 0),
    )
