"""Contract of commits: all or nothing, under expectations, each write logged."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.commits import (
    ACME,
    AGENT,
    DEFAULTS,
    FOREIGN_AGENT,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    assert_applied,
    commit,
    list_events,
    put_text,
    read_texts,
    try_write,
    version_numbers,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.blob import Blob
from carrel.core.store.commit import (
    Applied,
    Commit,
    Expect,
    ExpectationFailed,
    Quota,
    QuotaExceeded,
    Write,
)
from carrel.core.store.entry import Entry, Head
from carrel.core.store.idempotency import Claimed, IdempotencyKey, InProgress
from carrel.core.store.record import CollectionRevision, RecordChange, RecordType
from carrel.ports import CorruptContent

pytestmark = pytest.mark.anyio


async def test_every_commit_has_its_outcome_in_order(ports: Ports) -> None:
    first, second = await write(ports, "one"), await write(ports, "two", path=RULES)
    failing = Expect(AGENT, SOUL, version=7)

    answers = await ports.trees.commit(
        [commit(first), commit(second, expects=(failing,)), commit(second), commit(first, second)]
    )

    assert [type(answer) for answer in answers] == [Applied, ExpectationFailed, Applied, Applied]
    assert [head.path for head in assert_applied(answers[3]).heads] == [SOUL, RULES]
    assert [head.version for head in assert_applied(answers[3]).heads] == [2, 2]
    assert await ports.trees.commit([]) == ()


async def test_a_commit_cannot_refer_to_deleted_content(ports: Ports) -> None:
    deleted = Blob((await ports.blobs.put([b"gone"]))[0].digest, 4, 12_345)

    with pytest.raises(CorruptContent, match="content 12345 is gone"):
        await ports.trees.commit([commit(Write(AGENT, SOUL, Entry(deleted)))])

    assert await ports.trees.revisions([AGENT]) == (0,)


async def test_later_commits_of_a_call_see_earlier_ones(ports: Ports) -> None:
    first, second = await write(ports, "one"), await write(ports, "two")

    answers = await ports.trees.commit(
        [
            commit(first, expects=(Expect(AGENT, SOUL, version=0),)),
            commit(second, expects=(Expect(AGENT, SOUL, version=0),)),
            commit(second, expects=(Expect(AGENT, SOUL, version=1),)),
        ]
    )

    assert [type(answer) for answer in answers] == [Applied, ExpectationFailed, Applied]
    assert await read_texts(ports, AGENT) == {"SOUL.md": "two"}


async def test_a_refused_commit_changes_nothing_in_any_scope(ports: Ports) -> None:
    await put_text(ports, "mine", AGENT)
    key = IdempotencyKey(ACME, "PUT", "k")
    assert await ports.idempotency.claim(key, "f", NOW, NOW) == Claimed()
    writes = [await write(ports, "new", scope) for scope in (AGENT, TEMPLATE, DEFAULTS)]

    [answer] = await ports.trees.commit(
        [
            commit(
                *writes,
                expects=(Expect(AGENT, SOUL, version=1), Expect(DEFAULTS, SOUL, live=True)),
                changes=(RecordChange(ACME, RecordType.AGENT, "marco", {"name": "Marco"}),),
                idempotency_key=key,
            )
        ]
    )

    assert answer == ExpectationFailed(Expect(DEFAULTS, SOUL, live=True), None)
    assert await ports.trees.revisions([AGENT, TEMPLATE, DEFAULTS]) == (1, 0, 0)
    assert await read_texts(ports, AGENT) == {"SOUL.md": "mine"}
    assert await ports.records.get(ACME, RecordType.AGENT, ["marco"]) == (None,)
    assert await ports.records.audit(ACME) == ()
    assert [event.payload["version"] for event in await list_events(ports)] == [1]
    assert await ports.idempotency.claim(key, "f", NOW, NOW) == InProgress()


async def test_a_commit_over_several_scopes_is_applied_to_all_of_them(ports: Ports) -> None:
    await put_text(ports, "old", TEMPLATE)
    scopes = (AGENT, TEMPLATE, DEFAULTS)

    [answer] = await ports.trees.commit(
        [commit(*[await write(ports, "new", scope) for scope in scopes])]
    )

    assert [(head.version, head.revision) for head in assert_applied(answer).heads] == [
        (1, 1),
        (2, 2),
        (1, 1),
    ]
    assert await ports.trees.revisions(scopes) == (1, 2, 1)


GONE = "gone"
HOLDS = {
    (None, 0, None): True,
    (None, 1, None): False,
    (None, None, False): True,
    (None, None, True): False,
    (None, None, None): True,
    ("text", 0, None): False,
    ("text", 1, None): True,
    ("text", 2, None): False,
    ("text", None, True): True,
    ("text", None, False): False,
    ("text", 1, True): True,
    ("text", 1, False): False,
    (GONE, 0, None): False,
    (GONE, 1, None): False,
    (GONE, 2, None): True,
    (GONE, None, True): False,
    (GONE, None, False): True,
    (GONE, 2, True): False,
}


async def test_a_commit_is_applied_if_its_expectations_hold(ports: Ports) -> None:
    for n, ((state, version, live), holds) in enumerate(HOLDS.items()):
        scope = Scope(ACME, ScopeKind.AGENT, f"agent-{n}")
        current = await put_text(ports, "text", scope) if state else None
        current = await put_text(ports, None, scope) if state == GONE else current
        expect = Expect(scope, SOUL, version, live)

        outcome = await try_write(ports, "new", scope, RULES, expects=(expect,))

        if holds:
            assert isinstance(outcome, Applied), (state, expect)
        else:
            assert outcome == ExpectationFailed(expect, current)
            assert await read_texts(ports, scope, prefix="GUARD") == {}


async def test_an_expectation_may_concern_a_scope_that_is_not_written(ports: Ports) -> None:
    before = await put_text(ports, "beneath", TEMPLATE)
    expect = Expect(TEMPLATE, SOUL, before.version)
    after = await put_text(ports, "moved", TEMPLATE)

    assert await try_write(ports, "mine", expects=(expect,)) == ExpectationFailed(expect, after)


async def test_a_commit_is_refused_if_its_collection_revisions_have_changed(ports: Ports) -> None:
    policy = RecordChange(ACME, RecordType.POLICY, "policy", {"a": 1})
    old, new = (
        CollectionRevision(ACME, RecordType.POLICY, 0),
        CollectionRevision(ACME, RecordType.POLICY, 1),
    )

    assert isinstance(await try_write(ports, "one", collection_revisions=(old,)), Applied)
    await ports.trees.commit([commit(changes=(policy,))])

    assert await try_write(ports, "two", collection_revisions=(old,)) == ExpectationFailed(old)
    assert isinstance(await try_write(ports, "two", collection_revisions=(new,)), Applied)
    assert isinstance(
        await try_write(
            ports, "x", collection_revisions=(CollectionRevision("globex", RecordType.KEY, 0),)
        ),
        Applied,
    )
    assert await version_numbers(ports) == [3, 2, 1]


async def test_a_commit_raises_each_written_scope_by_one_revision(ports: Ports) -> None:
    paths = [Path(f"{n}.md") for n in range(5)]
    await put_text(ports, "before")

    [answer] = await ports.trees.commit(
        [commit(*[await write(ports, "text", path=path) for path in paths])]
    )

    assert {head.revision for head in assert_applied(answer).heads} == {2}
    assert await ports.trees.revisions([AGENT, TEMPLATE]) == (2, 0)


async def test_a_tombstone_is_a_version_and_a_recreated_path_continues_the_count(
    ports: Ports,
) -> None:
    heads = [await put_text(ports, text) for text in ("one", None, "three", None, "five")]

    assert [head.version for head in heads] == [1, 2, 3, 4, 5]
    assert [head.revision for head in heads] == [1, 2, 3, 4, 5]
    assert [bool(head.entry) for head in heads] == [True, False, True, False, True]


async def test_deleting_an_absent_path_changes_nothing(ports: Ports) -> None:
    await put_text(ports, "strict", path=RULES)
    deleted = await put_text(ports, None, path=RULES)

    absent = await put_text(ports, None, path=SOUL, at=NOW + 9)
    again = await put_text(ports, None, path=RULES, at=NOW + 9)

    assert absent == Head(SOUL, 0, 2, NOW + 9, None)
    assert again == deleted
    assert await ports.trees.revisions([AGENT]) == (2,)
    assert (await version_numbers(ports, path=SOUL), await version_numbers(ports, path=RULES)) == (
        [],
        [2, 1],
    )
    assert len(await list_events(ports)) == 2


async def test_deleting_from_a_missing_scope_does_not_create_it(ports: Ports) -> None:
    assert await put_text(ports, None, FOREIGN_AGENT) == Head(SOUL, 0, 0, NOW, None)
    assert await ports.trees.revisions([FOREIGN_AGENT]) == (0,)


async def test_an_empty_commit_is_applied_and_changes_nothing(ports: Ports) -> None:
    expect = Expect(AGENT, SOUL, 1)

    answers = await ports.trees.commit([commit(), commit(expects=(expect,))])

    assert answers == (Applied(()), ExpectationFailed(expect))
    assert await ports.trees.revisions([AGENT]) == (0,)


async def test_putting_the_same_content_again_is_a_new_version(ports: Ports) -> None:
    assert [(await put_text(ports, "same")).version for _ in range(3)] == [1, 2, 3]


async def test_when_the_store_raises_no_commit_of_the_call_is_applied(ports: Ports) -> None:
    good = commit(await write(ports, "good"))
    unserializable = RecordChange(ACME, RecordType.AGENT, "marco", {"name": object()})
    bad = commit(await write(ports, "bad"), changes=(unserializable,))
    others = asyncio.gather(*[try_write(ports, "other", TEMPLATE) for _ in range(4)])

    with pytest.raises(Exception, match=r".+"):
        await ports.trees.commit([good, bad])

    assert await ports.trees.revisions([AGENT]) == (0,)
    assert [type(outcome) for outcome in await others] == [Applied] * 4
    assert isinstance(await try_write(ports, "after"), Applied)


async def test_a_commit_can_fail_on_a_quota_after_its_expectations_held(ports: Ports) -> None:
    quota = Quota(AGENT, max_files=0)
    over_quota: Commit = commit(
        await write(ports, "text"),
        expects=(Expect(AGENT, SOUL, 0),),
        changes=(RecordChange(ACME, RecordType.AGENT, "marco", {}, expected=0),),
        quotas=(quota,),
    )

    assert await ports.trees.commit([over_quota]) == (QuotaExceeded(quota, 1, 4),)
    assert await ports.records.get(ACME, RecordType.AGENT, ["marco"]) == (None,)
