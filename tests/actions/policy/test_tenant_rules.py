"""A write obeys the rules of the moment, whoever changed them, also where it knew older ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path as File

import pytest
from tests.support.stores import open_ports, ports_over
from tests.support.tenants import create_tenant

from carrel.actions.accounts import secrets
from carrel.actions.files import files
from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsModel, PolicyModel
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.sqlite import open_store
from carrel.core.access import Actor
from carrel.core.errors import ValidationError, WorkspaceConflict, WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.edit import WriteCondition
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.tree import MARKDOWN
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

VALUE = "hunter2-hunter2"
SHAPE = "AKIA" + "Q3EGRIDJ7XNPT5WM"
OTHER, SOUL = Path("other.md"), Path("SOUL.md")
CONDITIONS = {
    "any": WriteCondition(),
    "none there": WriteCondition(absent=True),
    "as it was": WriteCondition(frozenset({'"v1"'})),
}


@dataclass(frozen=True)
class Pair:
    """Two processes with one store."""

    mine: Ports
    theirs: Ports
    owner: Actor
    stack: Stack

    async def say(
        self, text: str, path: Path = SOUL, condition: WriteCondition = WriteCondition()
    ) -> bytes:
        """A write of mine: what was stored of it, which is what a reader finds."""
        intent = files.WriteOptions(condition=condition)
        written = await files.put(self.mine, self.stack, path, text.encode(), self.owner, intent)
        found = await files.get_file(self.theirs, self.stack, path)
        assert await files.read_content(self.theirs, found) == written.content
        return written.content

    async def allow(self, **limits: int) -> None:
        await policies.put(self.theirs, self.owner, PolicyModel(limits=LimitsModel(**limits)))


@pytest.fixture(params=[1, 2])
async def pair(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Pair]:
    """With a stack of one layer, which is written without a look, and with a stack of two."""
    async with open_ports(tmp_path) as mine, open_ports(tmp_path) as theirs:
        _, owner = await create_tenant(mine)
        layers = (owner.scope, Scope(owner.tenant, ScopeKind.WORKSPACE, "beneath"))
        made = Pair(mine, theirs, owner, layers[: request.param])
        await made.say("known", OTHER)
        yield made


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_a_secret_that_another_process_adds_is_redacted_from_my_next_write(
    pair: Pair, condition: str
) -> None:
    if condition == "as it was" and len(pair.stack) > 1:
        found = await files.get_file(pair.mine, pair.stack, OTHER)
        wanted = WriteCondition(frozenset({found.etag}))
    else:
        wanted = CONDITIONS[condition]
    path = OTHER if condition == "as it was" else SOUL
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)

    assert await pair.say(f"it is {VALUE}", path, wanted) == b"it is [REDACTED:db]"


async def test_a_secret_that_another_process_deletes_is_stored_by_my_next_write(pair: Pair) -> None:
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)
    assert await pair.say(VALUE) == b"[REDACTED:db]"
    await secrets.delete(pair.theirs, pair.owner, "db")

    assert await pair.say(VALUE) == VALUE.encode()


async def test_a_path_that_holds_a_new_secret_is_refused_and_one_with_an_old_one_is_not(
    pair: Pair,
) -> None:
    path = Path(f"{VALUE}.md")
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)
    with pytest.raises(ValidationError):
        await pair.say("x", path)
    await secrets.delete(pair.theirs, pair.owner, "db")

    assert await pair.say("x", path) == b"x"


async def test_a_larger_file_is_admitted_once_another_process_allows_it(pair: Pair) -> None:
    await pair.allow(max_file_bytes=10)
    with pytest.raises(WorkspaceTooLarge):
        await pair.say("x" * 11)
    await pair.allow(max_file_bytes=11)

    assert await pair.say("x" * 11) == b"x" * 11


async def test_a_larger_file_is_refused_once_another_process_forbids_it(pair: Pair) -> None:
    assert await pair.say("x" * 11)
    await pair.allow(max_file_bytes=10)

    with pytest.raises(WorkspaceTooLarge) as refused:
        await pair.say("y" * 11)
    assert refused.value.details == {"maxBytes": 10, "providedBytes": 11}


async def test_how_many_files_there_may_be_is_what_another_process_said_last(pair: Pair) -> None:
    await pair.allow(max_files=1)
    with pytest.raises(WorkspaceTooLarge):
        await pair.say("one too many")
    await pair.allow(max_files=2)
    assert await pair.say("the second") == b"the second"
    await pair.allow(max_files=1)

    with pytest.raises(WorkspaceTooLarge):
        await pair.say("the third", Path("third.md"))


async def test_how_many_versions_are_kept_is_what_another_process_said_last(pair: Pair) -> None:
    for number in range(4):
        await pair.say(f"{number}")
    await pair.allow(max_versions=2)
    await pair.say("4")

    history = await pair.mine.trees.history(pair.stack[0], SOUL)
    assert 3 not in {version.head.version for version in history}


@pytest.mark.parametrize(
    ("mode", "stored"),
    [
        (SecretPatternMode.WARN, SHAPE.encode()),
        (SecretPatternMode.REDACT, b"[REDACTED:aws-access-key]"),
    ],
)
async def test_shapes_are_treated_as_another_process_said_last(
    pair: Pair, mode: SecretPatternMode, stored: bytes
) -> None:
    before = SecretPatternMode.REDACT if mode is SecretPatternMode.WARN else SecretPatternMode.WARN
    await policies.put(pair.theirs, pair.owner, PolicyModel(redaction=before))
    assert await pair.say(SHAPE) != stored
    await policies.put(pair.theirs, pair.owner, PolicyModel(redaction=mode))

    assert await pair.say(SHAPE) == stored


async def test_a_reason_is_redacted_by_the_rules_of_the_moment(pair: Pair) -> None:
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)
    intent = files.WriteOptions(reason=f"it was {VALUE}")
    await files.put(pair.mine, pair.stack, SOUL, b"x", pair.owner, intent)

    [version] = await pair.theirs.trees.history(pair.stack[0], SOUL)
    assert version.reason == "it was [REDACTED:db]"


async def test_who_is_stale_is_told_so_and_not_that_the_rules_have_changed(pair: Pair) -> None:
    await pair.say("mine")
    await files.put(pair.theirs, pair.stack, SOUL, b"theirs", pair.owner)
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)

    for condition in (WriteCondition(frozenset({'"v1"'})), WriteCondition(absent=True)):
        with pytest.raises(WorkspaceConflict) as stale:
            await pair.say("again", condition=condition)
        assert stale.value.current_version == 2
    assert (await files.get_file(pair.mine, pair.stack, SOUL)).head.version == 2


async def test_rules_that_change_all_the_time_never_let_a_secret_through(pair: Pair) -> None:
    for number in range(12):
        value = f"secret-value-{number}"
        await secrets.put(pair.theirs, pair.owner, "db", value)
        assert await pair.say(f"{value} {number}") == f"[REDACTED:db] {number}".encode()


async def test_the_first_write_of_a_process_knows_no_older_rules(tmp_path: File) -> None:
    async with open_ports(tmp_path) as ports:
        _, owner = await create_tenant(ports)
        await secrets.put(ports, owner, "db", VALUE)
    async with open_ports(tmp_path) as ports:
        written = await files.put(ports, (owner.scope,), SOUL, VALUE.encode(), owner)
        assert written.content == b"[REDACTED:db]"
        assert written.file.entry.type == MARKDOWN


async def test_bytes_that_go_out_before_the_commit_go_without_what_has_become_a_secret(
    tmp_path: File,
) -> None:
    outside = tmp_path / "objects"
    objects = DirectoryBlobStore(outside)
    async with (
        open_store(tmp_path / "carrel.db", objects=objects, inline=64) as mine,
        open_store(tmp_path / "carrel.db", objects=objects, inline=64) as theirs,
    ):
        here, there = ports_over(mine), ports_over(theirs)
        _, owner = await create_tenant(here)
        await files.put(here, (owner.scope,), SOUL, b"known", owner)
        await secrets.put(there, owner, "door", VALUE)
        await files.put(here, (owner.scope,), SOUL, VALUE.encode() * 10, owner)
    kept = [file.read_bytes() for file in outside.rglob("*") if file.is_file()]
    assert kept
    assert not [content for content in kept if VALUE.encode() in content]
