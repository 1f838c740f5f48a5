"""A write applies the tenant's current rules, also after changes by others."""

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
from carrel.actions.policy.policy_models import LimitsModel, PolicyModel
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.sqlite import open_store
from carrel.core.access import Actor
from carrel.core.errors import ValidationError, WorkspaceConflict, WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.write_condition import WriteCondition
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.entry import MARKDOWN
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

VALUE = "hunter2-hunter2"
PATTERN_SECRET = "AKIA" + "Q3EGRIDJ7XNPT5WM"
OTHER, SOUL = Path("other.md"), Path("SOUL.md")
CONDITIONS = {
    "any": WriteCondition(),
    "absent": WriteCondition(absent=True),
    "unchanged": WriteCondition(frozenset({'"v1"'})),
}


@dataclass(frozen=True)
class ProcessPair:
    """Two processes on one store."""

    mine: Ports
    theirs: Ports
    owner: Actor
    stack: Stack

    async def write(
        self, text: str, path: Path = SOUL, condition: WriteCondition = WriteCondition()
    ) -> bytes:
        """Write in the first process; returns the stored content, as read by the other."""
        options = files.WriteOptions(condition=condition)
        written = await files.put(self.mine, self.stack, path, text.encode(), self.owner, options)
        file = await files.get_file(self.theirs, self.stack, path)
        assert await files.read_content(self.theirs, file) == written.content
        return written.content

    async def allow(self, **limits: int) -> None:
        await policies.put(self.theirs, self.owner, PolicyModel(limits=LimitsModel(**limits)))


@pytest.fixture(params=[1, 2])
async def pair(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[ProcessPair]:
    """With a stack of one layer, which is written without a read, and with a stack of two."""
    async with open_ports(tmp_path) as mine, open_ports(tmp_path) as theirs:
        _, owner = await create_tenant(mine)
        layers = (owner.scope, Scope(owner.tenant, ScopeKind.WORKSPACE, "beneath"))
        pair = ProcessPair(mine, theirs, owner, layers[: request.param])
        await pair.write("known", OTHER)
        yield pair


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_a_secret_added_by_another_process_is_redacted_in_the_next_write(
    pair: ProcessPair, condition: str
) -> None:
    if condition == "unchanged" and len(pair.stack) > 1:
        file = await files.get_file(pair.mine, pair.stack, OTHER)
        write_condition = WriteCondition(frozenset({file.etag}))
    else:
        write_condition = CONDITIONS[condition]
    path = OTHER if condition == "unchanged" else SOUL
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)

    assert await pair.write(f"it is {VALUE}", path, write_condition) == b"it is [REDACTED:db]"


async def test_a_secret_deleted_by_another_process_is_stored_by_the_next_write(
    pair: ProcessPair,
) -> None:
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)
    assert await pair.write(VALUE) == b"[REDACTED:db]"
    await secrets.delete(pair.theirs, pair.owner, "db")

    assert await pair.write(VALUE) == VALUE.encode()


async def test_a_path_with_a_new_secret_is_refused_and_with_a_deleted_one_accepted(
    pair: ProcessPair,
) -> None:
    path = Path(f"{VALUE}.md")
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)
    with pytest.raises(ValidationError):
        await pair.write("x", path)
    await secrets.delete(pair.theirs, pair.owner, "db")

    assert await pair.write("x", path) == b"x"


async def test_a_larger_file_is_accepted_once_another_process_allows_it(pair: ProcessPair) -> None:
    await pair.allow(max_file_bytes=10)
    with pytest.raises(WorkspaceTooLarge):
        await pair.write("x" * 11)
    await pair.allow(max_file_bytes=11)

    assert await pair.write("x" * 11) == b"x" * 11


async def test_a_larger_file_is_refused_once_another_process_forbids_it(pair: ProcessPair) -> None:
    assert await pair.write("x" * 11)
    await pair.allow(max_file_bytes=10)

    with pytest.raises(WorkspaceTooLarge) as refused:
        await pair.write("y" * 11)
    assert refused.value.details == {"maxBytes": 10, "providedBytes": 11}


async def test_the_file_limit_is_the_one_another_process_set_last(pair: ProcessPair) -> None:
    await pair.allow(max_files=1)
    with pytest.raises(WorkspaceTooLarge):
        await pair.write("one too many")
    await pair.allow(max_files=2)
    assert await pair.write("the second") == b"the second"
    await pair.allow(max_files=1)

    with pytest.raises(WorkspaceTooLarge):
        await pair.write("the third", Path("third.md"))


async def test_the_version_limit_is_the_one_another_process_set_last(pair: ProcessPair) -> None:
    for number in range(4):
        await pair.write(f"{number}")
    await pair.allow(max_versions=2)
    await pair.write("4")

    history = await pair.mine.trees.history(pair.stack[0], SOUL)
    assert 3 not in {version.head.version for version in history}


@pytest.mark.parametrize(
    ("mode", "stored"),
    [
        (SecretPatternMode.WARN, PATTERN_SECRET.encode()),
        (SecretPatternMode.REDACT, b"[REDACTED:aws-access-key]"),
    ],
)
async def test_the_pattern_mode_is_the_one_another_process_set_last(
    pair: ProcessPair, mode: SecretPatternMode, stored: bytes
) -> None:
    before = SecretPatternMode.REDACT if mode is SecretPatternMode.WARN else SecretPatternMode.WARN
    await policies.put(pair.theirs, pair.owner, PolicyModel(redaction=before))
    assert await pair.write(PATTERN_SECRET) != stored
    await policies.put(pair.theirs, pair.owner, PolicyModel(redaction=mode))

    assert await pair.write(PATTERN_SECRET) == stored


async def test_a_reason_is_redacted_by_the_current_rules(pair: ProcessPair) -> None:
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)
    options = files.WriteOptions(reason=f"it was {VALUE}")
    await files.put(pair.mine, pair.stack, SOUL, b"x", pair.owner, options)

    [version] = await pair.theirs.trees.history(pair.stack[0], SOUL)
    assert version.reason == "it was [REDACTED:db]"


async def test_a_stale_condition_conflicts_even_if_the_rules_have_changed(
    pair: ProcessPair,
) -> None:
    await pair.write("mine")
    await files.put(pair.theirs, pair.stack, SOUL, b"theirs", pair.owner)
    await secrets.put(pair.theirs, pair.owner, "db", VALUE)

    for condition in (WriteCondition(frozenset({'"v1"'})), WriteCondition(absent=True)):
        with pytest.raises(WorkspaceConflict) as stale:
            await pair.write("again", condition=condition)
        assert stale.value.current_version == 2
    assert (await files.get_file(pair.mine, pair.stack, SOUL)).head.version == 2


async def test_rules_that_change_before_every_write_never_let_a_secret_through(
    pair: ProcessPair,
) -> None:
    for number in range(12):
        value = f"secret-value-{number}"
        await secrets.put(pair.theirs, pair.owner, "db", value)
        assert await pair.write(f"{value} {number}") == f"[REDACTED:db] {number}".encode()


async def test_the_first_write_of_a_process_applies_the_stored_rules(tmp_path: File) -> None:
    async with open_ports(tmp_path) as ports:
        _, owner = await create_tenant(ports)
        await secrets.put(ports, owner, "db", VALUE)
    async with open_ports(tmp_path) as ports:
        written = await files.put(ports, (owner.scope,), SOUL, VALUE.encode(), owner)
        assert written.content == b"[REDACTED:db]"
        assert written.file.entry.type == MARKDOWN


async def test_content_stored_before_the_commit_is_redacted_by_the_new_rules(
    tmp_path: File,
) -> None:
    outside = tmp_path / "objects"
    objects = DirectoryBlobStore(outside)
    async with (
        open_store(tmp_path / "carrel.db", objects=objects, inline=64) as mine,
        open_store(tmp_path / "carrel.db", objects=objects, inline=64) as theirs,
    ):
        first, second = ports_over(mine), ports_over(theirs)
        _, owner = await create_tenant(first)
        await files.put(first, (owner.scope,), SOUL, b"known", owner)
        await secrets.put(second, owner, "door", VALUE)
        await files.put(first, (owner.scope,), SOUL, VALUE.encode() * 10, owner)
    contents = [file.read_bytes() for file in outside.rglob("*") if file.is_file()]
    assert contents
    assert not [content for content in contents if VALUE.encode() in content]
