"""Agent records: what is stored, and how records of other versions are read."""

from __future__ import annotations

from msgspec.structs import replace

from carrel.core.agents.agent import AgentRecord, agent_change, agent_from_record
from carrel.core.store.record import Record, RecordType

KATE = AgentRecord(
    slug="kate",
    name="Kate",
    template_id="tpl_1",
    pins="abc",
    human_pair_id="per_1",
    is_shared=True,
    owner_id="per_2",
    config={"dreaming": {"enabled": True}, "unknown": 1},
    user_file=True,
    tags=("beta", "eu"),
)
STORED = {
    "slug": "kate",
    "name": "Kate",
    "templateId": "tpl_1",
    "pins": "abc",
    "humanPairId": "per_1",
    "isShared": True,
    "ownerId": "per_2",
    "config": {"dreaming": {"enabled": True}, "unknown": 1},
    "userFile": True,
    "tags": ("beta", "eu"),
}


def stored(body: dict[str, object]) -> Record:
    return Record("acme", RecordType.AGENT, "agt_1", 3, body, 0, 0)


def test_an_agent_is_stored_under_its_keys_and_read_back() -> None:
    change = agent_change("acme", "agt_1", KATE)
    assert (change.body, change.expected) == (STORED, 0)
    assert agent_from_record(stored(STORED)) == KATE
    assert set(change.index_keys) == {
        "template:tpl_1",
        "human:per_1",
        "owner:per_2",
        "user-file",
        "dreaming",
        "word:kate",
        "tag:beta",
        "tag:eu",
    }


def test_defaults_are_not_stored_and_missing_keys_are_defaults() -> None:
    change = agent_change("acme", "agt_1", AgentRecord("kate", "Kate"))
    assert change.body == {"slug": "kate", "name": "Kate"}
    assert change.index_keys == ("template:", "word:kate")
    assert agent_from_record(stored({"slug": "kate", "name": "Kate"})).config == {}


def test_a_change_preserves_keys_of_another_version_and_drops_cleared_ones() -> None:
    existing = stored({**STORED, "futureField": [1]})
    change = agent_change("acme", "agt_1", replace(KATE, owner_id=None), existing)
    expected = {name: value for name, value in STORED.items() if name != "ownerId"}
    assert (change.body, change.expected) == ({**expected, "futureField": [1]}, 3)
