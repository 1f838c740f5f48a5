"""Agent records: fields, defaults and index keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carrel.core.agents.config import AgentConfig, config_from_stored
from carrel.core.agents.tags import by_tag_index
from carrel.core.search.name_words import name_index_keys
from carrel.core.store.record import (
    Record,
    RecordChange,
    RecordType,
    decode_body,
    encode_body,
    unique_key,
)

USER_FILE_INDEX: Final = "user-file"
"""Index key of agents that have their own USER.md."""

WITHOUT_TEMPLATE_INDEX: Final = "template:"
"""Index key of agents without a template."""

DREAMING_INDEX: Final = "dreaming"
"""Index key of agents with scheduled dreams."""


class AgentRecord(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Stored body of an agent, without fields that have their default."""

    slug: str
    name: str
    template_id: str | None = None
    pins: str | None = None
    """Name of the agent's pin set."""
    human_pair_id: str | None = None
    """Person the agent works for."""
    is_shared: bool = False
    owner_id: str | None = None
    """Person whose private items the agent uses."""
    config: Mapping[str, Any] = {}
    """As sent, with fields that this version does not know."""
    user_file: bool = False
    """Whether the agent has its own USER.md."""
    tags: tuple[str, ...] = ()
    """In alphabetical order."""

    @property
    def known_config(self) -> AgentConfig:
        """Valid fields of the config; decoded with every access."""
        return config_from_stored(self.config)

    def is_of_person(self, person: str | None) -> bool:
        """Whether the agent is paired with the person or owned by them."""
        return person is not None and person in {self.human_pair_id, self.owner_id}


def by_template_index(id: str) -> str:
    """Index key of agents that use a template."""
    return f"template:{id}"


def by_human_index(id: str) -> str:
    """Index key of agents paired with a person."""
    return f"human:{id}"


def by_owner_index(id: str) -> str:
    """Index key of agents whose private items belong to a person."""
    return f"owner:{id}"


def by_folder_index(transcripts_dir: str) -> str:
    """Index key of agents, of any tenant, with this directory of transcripts."""
    segments = [name for name in transcripts_dir.split("/") if name not in {"", "."}]
    root = "/" if transcripts_dir.startswith("/") else ""
    return f"transcripts:{root}{'/'.join(segments)}"


def agent_from_record(record: Record) -> AgentRecord:
    return decode_body(record, AgentRecord)


def agent_config(record: Record) -> AgentConfig:
    """Valid fields of an agent's config."""
    return agent_from_record(record).known_config


def agent_change(
    tenant: str, id: str, agent: AgentRecord, existing: Record | None = None
) -> RecordChange:
    """Record change that creates an agent or replaces the existing one."""
    template_id = agent.template_id
    index_keys = [by_template_index(template_id) if template_id else WITHOUT_TEMPLATE_INDEX]
    index_keys += [by_human_index(agent.human_pair_id)] if agent.human_pair_id else []
    index_keys += [by_owner_index(agent.owner_id)] if agent.owner_id else []
    body = encode_body(agent, existing)
    index_keys += name_index_keys(RecordType.AGENT, body)
    index_keys += [by_tag_index(tag) for tag in agent.tags]
    index_keys += [USER_FILE_INDEX] if agent.user_file else []
    config = agent.known_config
    index_keys += [DREAMING_INDEX] if config.dreaming.enabled else []
    index_keys += [by_folder_index(config.transcripts_dir)] if config.transcripts_dir else []
    return RecordChange(
        tenant,
        RecordType.AGENT,
        id,
        body,
        existing.revision if existing else 0,
        unique_keys=(unique_key(tenant, RecordType.AGENT, "slug", agent.slug),),
        index_keys=tuple(index_keys),
    )
