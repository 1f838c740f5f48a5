"""What a prompt depends on beside the files, and how a run keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from msgspec import Struct

from carrel.core.prompt.workspace_notes import WorkspaceNotes
from carrel.core.runs import Audience

_OURS: Final = "prompt:"
_DAY, _LIMITS, _DOC = f"{_OURS}day", f"{_OURS}limits", f"{_OURS}doc:"
"""Under which names a run keeps what its prompt depends on."""


class PromptInputs(Struct, frozen=True):
    """What a prompt depends on beside the files."""

    mode: Audience
    day: date
    """Today, where the agent lives."""
    extra_docs: tuple[str, ...] = ()
    prompt_chars: int = 60_000
    file_chars: int = 12_000
    harness: WorkspaceNotes = WorkspaceNotes()

    def words(self) -> Mapping[str, str]:
        """All of it but the mode, as a run keeps it."""
        docs = {f"{_DOC}{at:03}": doc for at, doc in enumerate(self.extra_docs)}
        limits = {_LIMITS: f"{self.prompt_chars} {self.file_chars}"}
        return {_DAY: self.day.isoformat(), **limits, **docs, **self.harness.words()}

    @staticmethod
    def claims(name: str) -> bool:
        """Whether a word of this name is a wish's own, and so for nobody else to say."""
        return name.startswith(_OURS)

    @classmethod
    def of(cls, words: Mapping[str, str], mode: Audience, day: date) -> PromptInputs:
        """The same again; of a run that has kept none, as on that day and by the usual limits."""
        if _DAY not in words:
            return cls(mode, day)
        names = [name for name in words if name.startswith(_DOC)]
        names.sort(key=lambda name: int(name.removeprefix(_DOC)))
        docs = tuple(words[name] for name in names)
        most, a_file = map(int, words[_LIMITS].split())
        day = date.fromisoformat(words[_DAY])
        return cls(mode, day, docs, most, a_file, WorkspaceNotes.of(words))
