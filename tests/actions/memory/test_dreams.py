"""Dreams: what came up often stands in MEMORY.md afterwards, once, and nothing else is touched."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.support.memory_agents import DAY, MemoryAgent, create_memory_agent
from tests.support.tenants import add_person, start_after_yields

from carrel.actions.accounts import secrets
from carrel.actions.memory import dreams, memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.policy import policies
from carrel.actions.policy.policies import ClassRuleModel, PolicyModel
from carrel.core.errors import Conflict, Forbidden, NotFound, WorkspaceConflict
from carrel.core.identifiers import digest
from carrel.core.memory.dream_log import DREAMS_PATH, INDEX_PATH
from carrel.core.memory.dream_records import MAX_DREAMS, DreamStatus
from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.memory.promotion_score import RejectionReason
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Audience
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.fixture
async def marco(anywhere: Ports) -> MemoryAgent:
    return await create_memory_agent(anywhere)


async def revision(marco: MemoryAgent) -> int:
    own = (await marco.tenant.agent_stack())[0]
    [found] = await marco.ports.trees.revisions([own])
    return found


async def test_what_came_up_often_is_promoted_in_one_commit(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    rare = await marco.remember("Bob likes milk")
    await marco.recall("milk")
    before = await revision(marco)

    report = await marco.dreams()

    assert await revision(marco) == before + 1
    assert [one.memory for one in report.dream.promoted] == [tea.id]
    [(memory, reason)] = [(one.memory, one.reason) for one in report.dream.rejected]
    assert (memory, reason) == (rare.id, RejectionReason.TOO_FEW_RECALLS)
    text, diary, index = [await marco.read(path) for path in (MEMORY_PATH, DREAMS_PATH, INDEX_PATH)]
    assert text and diary and index
    assert "\n- Ada likes tea _(score=0.73, hits=3, days=1)_\n" in text
    assert "+- Ada likes tea" in report.diff
    assert "- promoted: 1\n" in diary
    assert json.loads(index)["archiveChecksum"] == digest(text.encode())
    [promotion] = await marco.ports.records.get(marco.owner.tenant, RecordType.PROMOTION, [tea.id])
    assert promotion
    told = await memories.get(marco.ports, marco.owner, "marco", tea.id)
    assert told.promoted_at == report.dream.started


async def test_a_second_dream_promotes_nothing_twice(marco: MemoryAgent) -> None:
    await marco.learn("Ada likes tea")
    await marco.dreams()
    text = await marco.read()
    marco.advance()
    await marco.recall("tea", "Ada", "likes")

    report = await marco.dreams()

    assert (report.dream.promoted, report.dream.skipped, report.diff) == ((), 1, "")
    assert await marco.read() == text
    diary = await marco.read(DREAMS_PATH)
    assert diary and diary.count("## Deep Sleep") == 2
    assert [one.skipped for one in await dreams.list_dreams(marco.ports, marco.owner, "marco")] == [
        1,
        0,
    ]


async def test_many_who_dream_at_once_promote_once(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    reports = await asyncio.gather(*[marco.dreams() for _ in range(4)])
    promoted = [one.memory for report in reports for one in report.dream.promoted]
    assert promoted == [tea.id]
    text = await marco.read()
    assert text and text.count("Ada likes tea") == 1


async def test_a_dry_run_shows_what_would_be_and_changes_nothing(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    before = await revision(marco)

    report = await marco.dreams(dry_run=True)

    assert (report.dry_run, [one.memory for one in report.dream.promoted]) == (True, [tea.id])
    assert "+- Ada likes tea _(score=0.73, hits=3, days=1)_" in report.diff
    assert await revision(marco) == before
    assert await dreams.list_dreams(marco.ports, marco.owner, "marco") == ()
    assert [one.memory for one in (await marco.dreams()).dream.promoted] == [tea.id]


async def test_what_was_told_in_a_shared_session_is_never_promoted(marco: MemoryAgent) -> None:
    shared = await marco.remember("Ada likes tea", Audience.SHARED)
    await marco.recall("Ada", "likes", "tea")
    report = await marco.dreams()
    [rejected] = report.dream.rejected
    assert (rejected.memory, rejected.reason) == (shared.id, RejectionReason.SHARED_AUDIENCE)
    assert "shared session" in rejected.why
    assert await marco.read() is None


async def test_a_person_who_writes_meanwhile_loses_nothing(marco: MemoryAgent) -> None:
    await marco.write("mine\n")
    await marco.learn("Ada likes tea")
    for turns in range(0, 60, 4):
        await marco.write(f"mine {turns}\n")
        await marco.remember(f"fact {turns}")
        await marco.recall(f"fact {turns}", f"{turns} fact", f"fact, {turns}", limit=1)
        mine = f"mine {turns}\nand more\n"
        await asyncio.gather(marco.dreams(), start_after_yields(turns, marco.write(mine)))
        text = await marco.read()
        assert text and text.startswith(mine.partition("and")[0])
        assert "and more\n" in text


async def test_what_a_template_says_of_memory_is_kept_beneath_the_dream(marco: MemoryAgent) -> None:
    await marco.tenant.write(marco.tenant.sales, MEMORY_PATH, b"# About {{AGENT_NAME}}\n")
    await marco.learn("Ada likes {{AGENT_NAME}}")
    await marco.dreams()
    text = await marco.read()
    assert text and text.startswith("# About Marco\n\n## Dreamed ")
    assert "- Ada likes \\{\\{AGENT_NAME\\}\\} _(score" in text
    assert await marco.tenant.source(MEMORY_PATH) == "agent-override"


async def test_a_memory_file_that_is_pinned_is_left_alone(marco: MemoryAgent) -> None:
    await marco.learn("Ada likes tea")
    await marco.write("mine\n")
    form = PolicyModel(classes=(ClassRuleModel("MEMORY.md", FileClass.PINNED),))
    await policies.put(marco.ports, marco.owner, form)
    with pytest.raises(Forbidden):
        await marco.dreams()
    assert await dreams.list_dreams(marco.ports, marco.owner, "marco") == ()


async def test_a_line_in_which_something_became_a_secret_goes_with_its_memory(
    marco: MemoryAgent,
) -> None:
    memory = await marco.learn("the door opens by hunter2hunter2")
    await marco.dreams()
    other = await marco.learn("the key is under the mat")
    await secrets.put(marco.ports, marco.owner, "door", "hunter2hunter2")
    await marco.dreams()
    assert "opens by [REDACTED:door]" in str(await marco.read())
    assert memory.id in str(await marco.read(INDEX_PATH))
    for one in (memory, other):
        await memories.forget(marco.ports, marco.owner, "marco", one.id)
    for path in (MEMORY_PATH, DREAMS_PATH):
        text = str(await marco.read(path))
        assert "opens by" not in text
        assert "mat" not in text


async def test_what_became_a_secret_before_its_approval_is_forgotten_with_it(
    marco: MemoryAgent,
) -> None:
    await marco.set(review=True)
    memory = await marco.learn("the door opens by hunter2hunter2")
    proposed = await marco.dreams()
    await secrets.put(marco.ports, marco.owner, "door", "hunter2hunter2")
    await dreams.approve(marco.ports, marco.owner, "marco", proposed.dream.id)
    assert "opens by [REDACTED:door]" in str(await marco.read())
    assert memory.id in str(await marco.read(INDEX_PATH))
    await memories.forget(marco.ports, marco.owner, "marco", memory.id)
    assert "opens by" not in str(await marco.read())
    assert "opens by" not in str(await marco.read(DREAMS_PATH))


async def test_old_lines_make_room_though_something_in_them_became_a_secret(
    marco: MemoryAgent,
) -> None:
    await marco.set(maxChars=500)
    old = await marco.learn("the door opens by hunter2hunter2 " + "x" * 300)
    await marco.dreams()
    await secrets.put(marco.ports, marco.owner, "door", "hunter2hunter2")
    await marco.dreams()
    await marco.learn("the key is under the mat " + "y" * 300)
    report = await marco.dreams()
    assert report.dream.evicted == (old.id,)
    assert "opens by" not in str(await marco.read())


async def test_secrets_that_became_some_later_are_not_written(marco: MemoryAgent) -> None:
    await marco.learn("the code is hunter2*hunter2")
    await secrets.put(marco.ports, marco.owner, "door", "hunter2*hunter2")
    await marco.dreams()
    texts = [await marco.read(path) for path in (MEMORY_PATH, DREAMS_PATH, INDEX_PATH)]
    assert "hunter2" not in str(texts)
    assert texts[0] and "REDACTED:door" in texts[0]


async def test_the_oldest_dreams_make_room_and_a_persons_text_never_does(
    marco: MemoryAgent,
) -> None:
    await marco.set(maxChars=500)
    await marco.write("# Mine\n\nthis stays\n")
    told = []
    for n in range(5):
        told.append(await marco.learn(f"fact {n} " + "x" * 60))
        await marco.dreams()
        marco.advance(60_000)
    text = await marco.read()
    assert text and len(text) <= 500
    assert text.startswith("# Mine\n\nthis stays\n")
    assert "fact 0" not in text and "fact 4" in text
    for memory in told:
        await marco.forget(memory.id)
    assert await marco.read() == "# Mine\n\nthis stays\n"


async def test_a_proposal_lands_as_it_was_reviewed(marco: MemoryAgent) -> None:
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    proposed = await marco.dreams()
    assert proposed.dream.status is DreamStatus.PROPOSED
    assert (await marco.read(), await marco.read(DREAMS_PATH)) == (None, None)
    shown = await dreams.get(marco.ports, marco.owner, "marco", proposed.dream.id)
    assert shown.diff == proposed.diff
    assert shown.contents == {tea.id: "Ada likes tea"}
    marco.advance()
    await marco.recall("tea")

    done = await dreams.approve(marco.ports, marco.owner, "marco", proposed.dream.id)

    assert (done.dream.status, done.dream.answered_by) == (DreamStatus.DONE, marco.owner.name)
    assert await marco.read() == proposed.dream.after
    with pytest.raises(Conflict):
        await dreams.approve(marco.ports, marco.owner, "marco", proposed.dream.id)
    assert (await marco.dreams()).dream.promoted == ()


async def test_a_proposal_is_superseded_by_an_edit_by_forgetting_and_by_the_next(
    marco: MemoryAgent,
) -> None:
    ports, owner = marco.ports, marco.owner
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    first, second = await marco.dreams(), await marco.dreams()
    assert (await dreams.get(ports, owner, "marco", first.dream.id)).dream.status == "superseded"
    await marco.write("mine\n")
    with pytest.raises(WorkspaceConflict):
        await dreams.approve(ports, owner, "marco", second.dream.id)
    assert await marco.read() == "mine\n"
    third = await marco.dreams()
    await marco.forget(tea.id)
    with pytest.raises(Conflict):
        await dreams.approve(ports, owner, "marco", third.dream.id)
    kept = [str(dream) for dream in await dreams.list_dreams(ports, owner, "marco")]
    assert "tea" not in str(kept)
    assert await marco.read() == "mine\n"


async def test_a_proposal_that_is_rejected_leaves_nothing_and_may_come_again(
    marco: MemoryAgent,
) -> None:
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    proposed = await marco.dreams()
    done = await dreams.reject(marco.ports, marco.owner, "marco", proposed.dream.id, "not now")
    assert (done.dream.status, done.dream.reason) == (DreamStatus.REJECTED, "not now")
    assert await marco.read() is None
    assert [one.memory for one in (await marco.dreams()).dream.promoted] == [tea.id]


async def test_only_so_many_dreams_are_kept(marco: MemoryAgent) -> None:
    made = [(await marco.dreams()).dream.id for _ in range(MAX_DREAMS + 3)]
    kept = [one.id for one in await dreams.list_dreams(marco.ports, marco.owner, "marco")]
    assert kept == made[:2:-1]


async def test_recalls_are_pruned_once_they_decide_nothing_more(marco: MemoryAgent) -> None:
    tea, milk = await marco.learn("Ada likes tea"), await marco.remember("Bob likes milk")
    await marco.recall("milk")
    recalls, tenant = marco.ports.recalls, marco.owner.tenant
    await marco.dreams()
    assert await recalls.count_since(tenant, tea.agent, 0) == {tea.id: 3, milk.id: 1}
    marco.advance(31 * DAY)
    await marco.dreams()
    assert await recalls.count_since(tenant, tea.agent, 0) == {milk.id: 1}
    marco.advance(365 * DAY)
    await marco.dreams()
    assert await recalls.count_since(tenant, tea.agent, 0) == {}


async def test_dreams_are_their_agents_own(marco: MemoryAgent) -> None:
    dream = (await marco.dreams()).dream
    await marco.tenant.create_agent("polo", "Polo")
    with pytest.raises(NotFound):
        await dreams.get(marco.ports, marco.owner, "polo", dream.id)
    with pytest.raises(NotFound):
        await dreams.get(marco.ports, marco.owner, "marco", dream.agent)
    _, member = await add_person(marco.ports, marco.owner, "bob")
    with pytest.raises(Forbidden):
        await dreams.sweep(marco.ports, member, "marco")
    await memories.remember(marco.ports, marco.owner, "polo", NewMemory("tea"))
