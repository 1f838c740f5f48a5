"""Interrupted materialize: the directory is the old or the new one, and a retry works.

From the chosen step on every operation fails, as if the process had been killed; or that one step
fails and all others work, as on a full disk.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import pytest
from tests.client.server_fixture import AgentEditor, read_directory

from carrel_client import Client
from carrel_client.local_directory import atomic_directory

STEPS = (
    "mkdir",
    "open",
    "write",
    "fsync",
    "rename",
    "chmod",
    "unlink",
    "rmdir",
    "listdir",
)
ROUNDS = 400


class ProcessKilled(BaseException):
    """Not caught by any handler, like SIGKILL."""


class FailingFileSystem:
    """The file system, which fails from a given step on."""

    def __init__(self, steps: int, *, deadly: bool) -> None:
        self.remaining, self.deadly = steps, deadly
        self.has_failed = False

    def step(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*arguments: Any, **options: Any) -> Any:
            self.remaining -= 1
            if self.has_failed and self.deadly:
                raise ProcessKilled
            if self.remaining < 0 and not self.has_failed:
                self.has_failed = True
                raise ProcessKilled if self.deadly else OSError(28, "No space left on device")
            return real(*arguments, **options)

        return checked

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in STEPS:
            patch.setattr(os, name, self.step(getattr(os, name)))
        patch.setattr(shutil, "rmtree", self.step(shutil.rmtree))
        patch.setattr(
            atomic_directory, "swap_names", self.step(vars(atomic_directory)["swap_names"])
        )


def interrupted(
    client: Client,
    editor: AgentEditor,
    directory: File,
    machine: FailingFileSystem,
    patch: pytest.MonkeyPatch,
) -> BaseException | None:
    with patch.context() as within:
        machine.install(within)
        try:
            client.materialize(editor.agent, directory)
        except (ProcessKilled, OSError) as problem:
            return problem
    return None


def never_swap(first: str, second: str) -> bool:
    """A file system that cannot exchange two names."""
    return False


@dataclass(frozen=True)
class Case:
    first: bool
    exchange: bool
    deadly: bool

    def __str__(self) -> str:
        when, how = "first" if self.first else "later", "exchange" if self.exchange else "renames"
        return f"{when} {how} {'killed' if self.deadly else 'failing'}"

    @property
    def gap(self) -> bool:
        """Whether the directory is absent for a moment."""
        return not self.exchange and self.deadly and not self.first


BOTH = (True, False)
CASES = [Case(*flags) for flags in itertools.product(BOTH, BOTH, BOTH)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interruption_at_any_step_leaves_a_complete_directory(
    client: Client,
    editor: AgentEditor,
    directory: File,
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
) -> None:
    if not case.exchange:
        monkeypatch.setattr(atomic_directory, "swap_names", never_swap)
    editor.put("a.md", "0")
    editor.put("b/c.md", "0")
    client.materialize(editor.agent, directory)
    reached, outcomes, after = 0, set(), editor.served()
    for until in range(ROUNDS):
        before: dict[str, bytes] = after
        if case.first:
            shutil.rmtree(directory.parent, ignore_errors=True)
            before = {}
        else:
            editor.put("a.md", f"{until}")
            after = editor.served()
        assert read_directory(directory) == before
        machine = FailingFileSystem(until, deadly=case.deadly)
        problem = interrupted(client, editor, directory, machine, monkeypatch)

        files = read_directory(directory)
        if case.gap and not directory.exists():
            outcomes.add("between")
        else:
            assert files in (before, after)
            outcomes.add("old" if files == before else "new")
        client.materialize(editor.agent, directory)
        assert read_directory(directory) == after
        assert sorted(os.listdir(directory.parent)) == [".directory.carrel", "directory"]
        assert os.listdir(directory.parent / ".directory.carrel") == ["lock"]
        if not machine.has_failed:
            break
        reached += 1
        assert problem is not None or files == after
    assert 15 < reached < ROUNDS - 1, "every step was reached, and the last one"
    assert outcomes >= {"old", "new"}
    assert ("between" in outcomes) == case.gap


def test_interruption_between_two_renames_is_repaired_without_the_server(
    client: Client, editor: AgentEditor, directory: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor.put("a.md", "x")
    client.materialize(editor.agent, directory)
    os.rename(directory, directory.parent / ".directory.carrel/old")

    with Client("http://127.0.0.1:1", "t") as unreachable, pytest.raises(Exception, match="reach"):
        unreachable.materialize(editor.agent, directory)

    assert read_directory(directory) == editor.served()
