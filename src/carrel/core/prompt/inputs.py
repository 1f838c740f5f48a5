"""Inputs of a prompt beside the files, and their storage in a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from msgspec import Struct

from carrel.core.prompt.workspace_notes import WorkspaceNotes
from carrel.core.runs import Audience

_PREFIX: Final = "prompt:"
_DAY, _LIMITS, _DOC = f"{_PREFIX}day", f"{_PREFIX}limits", f"{_PREFIX}doc:"
"""Names of run variables that store prompt inputs."""


class PromptInputs(Struct, frozen=True):
    """Inputs of a prompt beside the files."""

    mode: Audience
    day: date
    """Current date in the agent's time zone."""
    extra_docs: tuple[str, ...] = ()
    prompt_chars: int = 60_000
    file_chars: int = 12_000
    skills_chars: int = 8_000
    """Limit of the index of skills; 0: the prompt has none."""
    workspace_notes: WorkspaceNotes = WorkspaceNotes()

    def to_run_variables(self) -> Mapping[str, str]:
        """Serialize everything except the audience into a run's variables."""
        docs = {f"{_DOC}{index:03}": doc for index, doc in enumerate(self.extra_docs)}
        limits = {_LIMITS: f"{self.prompt_chars} {self.file_chars} {self.skills_chars}"}
        return {
            _DAY: self.day.isoformat(),
            **limits,
            **docs,
            **self.workspace_notes.to_run_variables(),
        }

    @staticmethod
    def is_reserved(name: str) -> bool:
        """Whether a run variable name is used by prompt inputs."""
        return name.startswith(_PREFIX)

    @classmethod
    def from_run_variables(
        cls, run_variables: Mapping[str, str], mode: Audience, day: date
    ) -> PromptInputs:
        """Restore the inputs from a run; `day` and default limits if the run has none.

        A run that was started before prompts had an index of skills has none.
        """
        if _DAY not in run_variables:
            return cls(mode, day)
        names = [name for name in run_variables if name.startswith(_DOC)]
        names.sort(key=lambda name: int(name.removeprefix(_DOC)))
        docs = tuple(run_variables[name] for name in names)
        prompt_chars, file_chars, *skills_chars = map(int, run_variables[_LIMITS].split())
        day = date.fromisoformat(run_variables[_DAY])
        return cls(
            mode,
            day,
            docs,
            prompt_chars,
            file_chars,
            skills_chars[0] if skills_chars else 0,
            WorkspaceNotes.from_run_variables(run_variables),
        )
