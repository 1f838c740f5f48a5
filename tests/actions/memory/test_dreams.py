"""Dreams promote frequently recalled memories into MEMORY.md, once."""

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
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.errors import Conflict, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path, digest
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
    [current] = await marco.ports.trees.revisions([own])
    return current


async def test_a_frequently_recalled_memory_is_promoted_in_one_commit(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    rare = await marco.remember("Bob likes milk")
    await marco.recall("milk")
    before = await revision(marco)

    report = await marco.dreams()

    assert await revision(marco) == before + 1
    assert [item.memory for item in report.dream.promoted] == [tea.id]
    [(memory, reason)] = [(item.memory, item.reason) for item in report.dream.rejected]
    assert (memory, reason) == (rare.id, RejectionReason.TOO_FEW_RECALLS)
    text, log, index = [await marco.read(path) for path in (MEMORY_PATH, DREAMS_PATH, INDEX_PATH)]
    assert text and log and index
    assert "\n- Ada likes tea _(score=0.73, hits=3, days=1)_\n" in text
    assert "+- Ada likes tea" in report.diff
    assert "- promoted: 1\n" in log
    assert json.loads(index)["archiveChecksum"] == digest(text.encode())
    [promotion] = await marco.ports.records.get(marco.owner.tenant, RecordType.PROMOTION, [tea.id])
    assert promotion
    memory_record = await memories.get(marco.ports, marco.owner, "marco", tea.id)
    assert memory_record.promoted_at == report.dream.started


async def test_a_dream_writes_no_variant_of_a_pinned_path(marco: MemoryAgent) -> None:
    classes = {"MEMORY.md": FileClass.LIVE, "DREAMS.md": FileClass.LIVE, "*.md": FileClass.PINNED}
    rules = tuple(ClassRuleModel(pattern, item) for pattern, item in classes.items())
    await policies.put(marco.ports, marco.owner, PolicyModel(classes=rules), confirm=True)
    await marco.tenant.write(marco.tenant.sales, Path("dreams.md"), b"x")
    await marco.learn("Ada likes tea")
    with pytest.raises(ValidationError, match=r"DREAMS\.md collides .* dreams\.md"):
        await marco.dreams()
    assert await marco.read(MEMORY_PATH) is None


async def test_a_memory_recalled_only_by_function_words_is_no_candidate(
    marco: MemoryAgent,
) -> None:
    for n in range(8):
        await marco.remember(f"it is what one has to do, number {n}")
    luis = await marco.remember("Luis cannot eat peanuts")
    await marco.recall("what is it that Luis has", "who is Luis to you", "is Luis one of us")
    await marco.recall("what is it to you", "is it", "what has one to do")

    report = await marco.dreams()

    assert [item.memory for item in report.dream.promoted] == [luis.id]
    assert (report.dream.candidates, report.dream.rejected) == (1, ())


async def test_a_memory_that_answers_more_of_its_questions_scores_higher(
    marco: MemoryAgent,
) -> None:
    tea = await marco.remember("Ada drinks green tea from Kyoto")
    cup = await marco.remember("Ada drinks from a cup")
    for question in ("green tea from Kyoto", "tea Ada drinks", "Kyoto tea of Ada"):
        await marco.recall(f"{question} in a cup", limit=2)
    report = await marco.dreams(dry_run=True)
    assert [item.memory for item in report.dream.promoted] == [tea.id, cup.id]
    better, worse = report.dream.promoted
    assert better.score > worse.score + 0.05


async def test_a_second_dream_promotes_nothing_twice(marco: MemoryAgent) -> None:
    await marco.learn("Ada likes tea")
    await marco.dreams()
    text = await marco.read()
    marco.advance()
    await marco.recall("tea", "Ada", "likes")

    report = await marco.dreams()

    assert (report.dream.promoted, report.dream.skipped, report.diff) == ((), 1, "")
    assert await marco.read() == text
    log = await marco.read(DREAMS_PATH)
    assert log and log.count("## Deep Sleep") == 2
    assert [
        item.skipped for item in await dreams.list_dreams(marco.ports, marco.owner, "marco")
    ] == [
        1,
        0,
    ]


async def test_concurrent_dreams_promote_a_memory_once(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    reports = await asyncio.gather(*[marco.dreams() for _ in range(4)])
    promoted = [item.memory for report in reports for item in report.dream.promoted]
    assert promoted == [tea.id]
    text = await marco.read()
    assert text and text.count("Ada likes tea") == 1


async def test_a_dry_run_returns_the_result_and_changes_nothing(marco: MemoryAgent) -> None:
    tea = await marco.learn("Ada likes tea")
    before = await revision(marco)

    report = await marco.dreams(dry_run=True)

    assert (report.dry_run, [item.memory for item in report.dream.promoted]) == (True, [tea.id])
    assert "+- Ada likes tea _(score=0.73, hits=3, days=1)_" in report.diff
    assert await revision(marco) == before
    assert await dreams.list_dreams(marco.ports, marco.owner, "marco") == ()
    assert [item.memory for item in (await marco.dreams()).dream.promoted] == [tea.id]


async def test_a_memory_of_a_shared_session_is_never_promoted(marco: MemoryAgent) -> None:
    shared = await marco.remember("Ada likes tea", Audience.SHARED)
    await marco.recall("Ada", "likes", "tea")
    report = await marco.dreams()
    [rejected] = report.dream.rejected
    assert (rejected.memory, rejected.reason) == (shared.id, RejectionReason.SHARED_AUDIENCE)
    assert "shared session" in rejected.why
    assert await marco.read() is None


async def test_a_person_who_edits_during_a_dream_loses_no_text(marco: MemoryAgent) -> None:
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


async def test_a_templates_memory_file_is_kept_above_the_promoted_lines(marco: MemoryAgent) -> None:
    await marco.tenant.write(marco.tenant.sales, MEMORY_PATH, b"# About {{AGENT_NAME}}\n")
    await marco.learn("Ada likes {{AGENT_NAME}}")
    await marco.dreams()
    text = await marco.read()
    assert text and text.startswith("# About Marco\n\n## Dreamed ")
    assert "- Ada likes {\\{AGENT_NAME}} _(score" in text
    assert await marco.tenant.source(MEMORY_PATH) == "agent-override"


async def test_a_pinned_memory_file_is_not_written(marco: MemoryAgent) -> None:
    await marco.learn("Ada likes tea")
    await marco.write("mine\n")
    policy = PolicyModel(classes=(ClassRuleModel("MEMORY.md", FileClass.PINNED),))
    await policies.put(marco.ports, marco.owner, policy)
    with pytest.raises(Forbidden):
        await marco.dreams()
    assert await dreams.list_dreams(marco.ports, marco.owner, "marco") == ()


async def test_forgetting_a_memory_removes_its_line_even_if_redacted_later(
    marco: MemoryAgent,
) -> None:
    memory = await marco.learn("the door opens by hunter2hunter2")
    await marco.dreams()
    other = await marco.learn("the key is under the mat")
    await secrets.put(marco.ports, marco.owner, "door", "hunter2hunter2")
    await marco.dreams()
    assert "opens by [REDACTED:door]" in str(await marco.read())
    assert memory.id in str(await marco.read(INDEX_PATH))
    for item in (memory, other):
        await memories.forget(marco.ports, marco.owner, "marco", item.id)
    for path in (MEMORY_PATH, DREAMS_PATH):
        text = str(await marco.read(path))
        assert "opens by" not in text
        assert "mat" not in text


async def test_a_line_redacted_before_its_approval_is_removed_when_forgotten(
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


async def test_redacted_old_lines_are_evicted_at_the_size_limit(marco: MemoryAgent) -> None:
    await marco.set(maxChars=500)
    old = await marco.learn("the door opens by hunter2hunter2 " + "x" * 300)
    await marco.dreams()
    await secrets.put(marco.ports, marco.owner, "door", "hunter2hunter2")
    await marco.dreams()
    await marco.learn("the key is under the mat " + "y" * 300)
    report = await marco.dreams()
    assert report.dream.evicted == (old.id,)
    assert "opens by" not in str(await marco.read())


async def test_values_that_became_secrets_are_not_written(marco: MemoryAgent) -> None:
    await marco.learn("the code is hunter2*hunter2")
    await secrets.put(marco.ports, marco.owner, "door", "hunter2*hunter2")
    await marco.dreams()
    texts = [await marco.read(path) for path in (MEMORY_PATH, DREAMS_PATH, INDEX_PATH)]
    assert "hunter2" not in str(texts)
    assert texts[0] and "REDACTED:door" in texts[0]


async def test_an_evicted_memory_comes_back_when_it_is_recalled_again(marco: MemoryAgent) -> None:
    await marco.set(maxChars=500)
    old = await marco.learn("Ada likes tea " + "x" * 200)
    await marco.dreams()
    marco.advance(60_000)
    new = await marco.learn("Bob likes milk " + "y" * 200)

    report = await marco.dreams()

    assert report.dream.evicted == (old.id,)
    [eviction] = report.dream.rejected
    assert (eviction.memory, eviction.reason) == (old.id, RejectionReason.EVICTED)
    assert (await memories.get(marco.ports, marco.owner, "marco", old.id)).promoted_at is None
    marco.advance(60_000)
    [waiting] = (await marco.dreams()).dream.rejected
    assert (waiting.memory, waiting.reason) == (old.id, RejectionReason.EVICTED)
    assert "not recalled since" in waiting.why
    await marco.recall("does Ada like tea", limit=1)
    again = await marco.dreams()
    assert [item.memory for item in again.dream.promoted] == [old.id]
    assert again.dream.evicted == (new.id,)
    text = await marco.read()
    assert text and "Ada likes tea" in text and "Bob" not in text


async def test_the_oldest_promoted_blocks_are_evicted_and_a_persons_text_never_is(
    marco: MemoryAgent,
) -> None:
    await marco.set(maxChars=500)
    await marco.write("# Mine\n\nthis stays\n")
    learned = []
    for n in range(5):
        learned.append(await marco.learn(f"fact {n} " + "x" * 60))
        await marco.dreams()
        marco.advance(60_000)
    text = await marco.read()
    assert text and len(text) <= 500
    assert text.startswith("# Mine\n\nthis stays\n")
    assert "fact 0" not in text and "fact 4" in text
    for memory in learned:
        await marco.forget(memory.id)
    assert await marco.read() == "# Mine\n\nthis stays\n"


async def test_an_approved_proposal_is_written_as_it_was_reviewed(marco: MemoryAgent) -> None:
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    proposed = await marco.dreams()
    assert proposed.dream.status is DreamStatus.PROPOSED
    assert (await marco.read(), await marco.read(DREAMS_PATH)) == (None, None)
    reviewed = await dreams.get(marco.ports, marco.owner, "marco", proposed.dream.id)
    assert reviewed.diff == proposed.diff
    assert reviewed.contents == {tea.id: "Ada likes tea"}
    marco.advance()
    await marco.recall("tea")

    done = await dreams.approve(marco.ports, marco.owner, "marco", proposed.dream.id)

    assert (done.dream.status, done.dream.answered_by) == (DreamStatus.DONE, marco.owner.name)
    assert await marco.read() == proposed.dream.after
    with pytest.raises(Conflict):
        await dreams.approve(marco.ports, marco.owner, "marco", proposed.dream.id)
    assert (await marco.dreams()).dream.promoted == ()


async def test_a_proposal_is_superseded_by_an_edit_by_forgetting_and_by_the_next_dream(
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
    listed = [str(dream) for dream in await dreams.list_dreams(ports, owner, "marco")]
    assert "tea" not in str(listed)
    assert await marco.read() == "mine\n"


async def test_a_rejected_proposal_writes_nothing_and_may_be_proposed_again(
    marco: MemoryAgent,
) -> None:
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    proposed = await marco.dreams()
    done = await dreams.reject(marco.ports, marco.owner, "marco", proposed.dream.id, "not now")
    assert (done.dream.status, done.dream.reason) == (DreamStatus.REJECTED, "not now")
    assert await marco.read() is None
    assert [item.memory for item in (await marco.dreams()).dream.promoted] == [tea.id]


@pytest.mark.parametrize("approves", [True, False])
async def test_the_audit_names_the_answer_to_a_proposal_its_person_and_key(
    marco: MemoryAgent, approves: bool
) -> None:
    await marco.set(review=True)
    tea = await marco.learn("Ada likes tea")
    id, answer = (await marco.dreams()).dream.id, dreams.approve if approves else dreams.reject
    await answer(marco.ports, marco.owner, "marco", id)
    [entry, *_] = await marco.ports.records.audit(marco.owner.tenant)
    expected = "dream: 1 promoted, as reviewed" if approves else "reject a dream"
    assert (entry.author, entry.reason) == (marco.owner.name, expected)
    assert entry.key == marco.owner.key_reference
    assert entry.subjects == (f"dream/{id}", f"agent/{tea.agent}")


async def test_a_secret_in_the_reason_of_a_rejection_is_redacted(marco: MemoryAgent) -> None:
    await secrets.put(marco.ports, marco.owner, "door", "hunter2-hunter2")
    await marco.set(review=True)
    await marco.learn("Ada likes tea")
    id, reason = (await marco.dreams()).dream.id, "never hunter2-hunter2"
    done = await dreams.reject(marco.ports, marco.owner, "marco", id, reason)
    assert done.dream.reason == "never [REDACTED:door]"


async def test_only_the_newest_dreams_are_retained(marco: MemoryAgent) -> None:
    created = [(await marco.dreams()).dream.id for _ in range(MAX_DREAMS + 3)]
    listed = [item.id for item in await dreams.list_dreams(marco.ports, marco.owner, "marco")]
    assert listed == created[:2:-1]


async def test_recalls_are_pruned_after_their_retention(marco: MemoryAgent) -> None:
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


async def test_dreams_belong_to_their_agent(marco: MemoryAgent) -> None:
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
