"""Whenever it is interrupted, a directory is the old one or the new one, and the next call works.

From the chosen step on nothing can be done any more, as if the process had been killed; or that
one step fails and all others work, as when a disk is full.
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

from carrel_client import Client, atomic_directory

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


class Killed(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


class Machine:
    """The file system, until its time has come."""

    def __init__(self, until: int, *, deadly: bool) -> None:
        self.left, self.deadly = until, deadly
        self.struck = False

    def step(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def taken(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.struck and self.deadly:
                raise Killed
            if self.left < 0 and not self.struck:
                self.struck = True
                raise Killed if self.deadly else OSError(28, "No space left on device")
            return real(*given, **named)

        return taken

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
    machine: Machine,
    patch: pytest.MonkeyPatch,
) -> BaseException | None:
    with patch.context() as within:
        machine.install(within)
        try:
            client.materialize(editor.agent, directory)
        except (Killed, OSError) as problem:
            return problem
    return None


def never(one: str, other: str) -> bool:
    """A file system on which names cannot change places."""
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
        """Whether there is a moment in which there is no directory."""
        return not self.exchange and self.deadly and not self.first


BOTH = (True, False)
CASES = [Case(*each) for each in itertools.product(BOTH, BOTH, BOTH)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interruption_at_any_step_leaves_a_complete_directory(
    client: Client,
    editor: AgentEditor,
    directory: File,
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
) -> None:
    if not case.exchange:
        monkeypatch.setattr(atomic_directory, "swap_names", never)
    editor.put("a.md", "0")
    editor.put("b/c.md", "0")
    client.materialize(editor.agent, directory)
    reached, seen, after = 0, set(), editor.served()
    for until in range(ROUNDS):
        before: dict[str, bytes] = after
        if case.first:
            shutil.rmtree(directory.parent, ignore_errors=True)
            before = {}
        else:
            editor.put("a.md", f"{until}")
            after = editor.served()
        assert read_directory(directory) == before
        machine = Machine(until, deadly=case.deadly)
        problem = interrupted(client, editor, directory, machine, monkeypatch)

        found = read_directory(directory)
        if case.gap and not directory.exists():
            seen.add("between")
        else:
            assert found in (before, after)
            seen.add("old" if found == before else "new")
        client.materialize(editor.agent, directory)
        assert read_directory(directory) == after
        assert sorted(os.listdir(directory.parent)) == [".directory.carrel", "directory"]
        assert os.listdir(directory.parent / ".directory.carrel") == ["lock"]
        if not machine.struck:
            break
        reached += 1
        assert problem is not None or found == after
    assert 15 < reached < ROUNDS - 1, "every step was reached, and the last one"
    assert seen >= {"old", "new"}
    assert ("between" in seen) == case.gap


def test_interruption_between_two_renames_is_repaired_without_the_server(
    client: Client, editor: AgentEditor, directory: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor.put("a.md", "x")
    client.materialize(editor.agent, directory)
    os.rename(directory, directory.parent / ".directory.carrel/old")

    with Client("http://127.0.0.1:1", "t") as nobody, pytest.raises(Exception, match="answer"):
        nobody.materialize(editor.agent, directory)

    assert read_directory(directory) == editor.served()
