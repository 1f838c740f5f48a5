"""The difference between a run's files and the live workspace."""

from __future__ import annotations

import pytest

from carrel.actions.files import files
from carrel.actions.runs import diff, runs
from carrel.actions.runs.runs import RunRequest
from carrel.core.access import Actor
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Stack
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ADA = Actor("acme", "ada")
OWN: Stack = (ADA.scope,)
WORK = RunRequest("work")


async def write(ports: Ports, text: str, path: Path) -> None:
    await files.put(ports, OWN, path, text.encode(), ADA)


async def test_a_diff_lists_the_changes_since_the_run(ports: Ports) -> None:
    for path, text in {"a.md": "1\n2\n", "b.md": "b", "c.md": "c", "d.md": "d"}.items():
        await write(ports, text, Path(path))
    run = await runs.start(ports, ADA, WORK)
    assert await diff.diff(ports, run) == ()
    await write(ports, "1\nTWO\n", Path("a.md"))
    await files.delete(ports, OWN, Path("b.md"), ADA)
    await write(ports, "c", Path("c.md"))
    await write(ports, "e", Path("e.md"))
    changes = await diff.diff(ports, run)
    assert [(change.path.text, change.kind) for change in changes] == [
        ("a.md", "changed"),
        ("b.md", "removed"),
        ("e.md", "added"),
    ]
    versions = [tuple(f and f.head.version for f in (d.before, d.after)) for d in changes]
    assert versions == [(1, 2), (1, None), (None, 1)]
    difference, text = await diff.diff_file(ports, run, Path("a.md"))
    assert difference == changes[0]
    assert text == "--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n 1\n-2\n+TWO\n"
    assert await diff.diff_file(ports, run, Path("c.md")) == (None, "")
    _, removed = await diff.diff_file(ports, run, Path("b.md"))
    assert "-b" in removed
    with pytest.raises(NotFound):
        await diff.diff_file(ports, run, Path("never.md"))
