"""Commits that expect the paths of whole scopes as they were read."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.commits import AGENT, DEFAULTS, TEMPLATE, commit, put_text, write
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path, Scope
from carrel.core.store.commit import Applied, Commit, ExpectationFailed, ExpectPathsUnchanged

pytestmark = pytest.mark.anyio
SCOPES = (AGENT, TEMPLATE, DEFAULTS)
RULE = Path("rules/a.md")


def is_rule(path: Path) -> bool:
    return path.text.startswith("rules/")


async def expect_rules(ports: Ports, scopes: tuple[Scope, ...] = SCOPES) -> ExpectPathsUnchanged:
    trees = await ports.trees.read(scopes)
    return ExpectPathsUnchanged({tree.scope: tree.revision for tree in trees}, is_rule)


async def change(ports: Ports, check: ExpectPathsUnchanged, path: Path = RULE) -> Commit:
    return commit(await write(ports, "mine", AGENT, path), unchanged_paths=check)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("before", ["absent", "file", "deleted"])
async def test_a_path_that_changed_refuses_the_commit(
    ports: Ports, scope: Scope, before: str
) -> None:
    if before != "absent":
        await put_text(ports, "x", scope, Path("rules/b.md"))
    check = await expect_rules(ports)
    await put_text(ports, None if before == "deleted" else "y", scope, Path("rules/b.md"))

    assert await ports.trees.commit([await change(ports, check)]) == (ExpectationFailed(check),)
    [tree] = await ports.trees.read([AGENT], [RULE])
    assert not tree.heads

    [outcome] = await ports.trees.commit([await change(ports, await expect_rules(ports))])
    assert isinstance(outcome, Applied)


async def test_other_paths_and_other_scopes_may_change(ports: Ports) -> None:
    check = await expect_rules(ports, (AGENT, TEMPLATE))
    await put_text(ports, "y", TEMPLATE, Path("notes.md"))
    await put_text(ports, "y", DEFAULTS, RULE)
    [outcome] = await ports.trees.commit([await change(ports, check)])
    assert isinstance(outcome, Applied)


async def test_the_commits_of_one_call_see_each_other(ports: Ports) -> None:
    check = await expect_rules(ports)
    first = await change(ports, check)
    second = await change(ports, check, Path("rules/b.md"))
    outcomes = await ports.trees.commit([first, second])
    assert isinstance(outcomes[0], Applied)
    assert outcomes[1] == ExpectationFailed(check)


async def test_of_commits_at_the_same_time_one_is_applied(ports: Ports) -> None:
    for number in range(10):
        check = await expect_rules(ports)
        paths = [Path(f"rules/{number}-{name}.md") for name in "abc"]
        plain = commit(await write(ports, "x", TEMPLATE, paths[0]))
        commits = [plain, *[await change(ports, check, path) for path in paths[1:]]]
        outcomes = await asyncio.gather(*(ports.trees.commit([c]) for c in commits))
        applied = [isinstance(outcome, Applied) for [outcome] in outcomes]
        assert applied[0]
        assert sum(applied[1:]) <= 1
