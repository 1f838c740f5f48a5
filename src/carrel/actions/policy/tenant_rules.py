"""What a tenant has decided for itself, ready for use on every write: policy and redactor."""

from __future__ import annotations

from dataclasses import dataclass

from carrel.actions.policy.policies import POLICY_ID, policy_of
from carrel.actions.records import iter_records
from carrel.core.policy import Policy
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import CollectionRevision, RecordType
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class TenantRules:
    policy: Policy
    redactor: Redactor
    shelves: tuple[CollectionRevision, ...]
    """What these were worked out from: a commit made under them expects it unchanged."""

    def redact_text(self, text: str) -> str:
        return self.redactor.redact(text.encode()).content.decode()


async def load_rules(ports: Ports, tenant: str) -> TenantRules:
    revision = await ports.records.revision()
    found: TenantRules | None = ports.record_cache.get(revision, ("rules", tenant))
    if found is None:
        found = await _read(ports, tenant)
        ports.record_cache.put(revision, ("rules", tenant), found)
    return found


def cached_rules(ports: Ports, tenant: str) -> TenantRules | None:
    """The rules as they were when somebody last asked, if anybody has: for a commit that expects
    them unchanged."""
    found: TenantRules | None = ports.record_cache.peek(("rules", tenant))
    return found


def secret_context(tenant: str, id: str) -> str:
    """What a sealed secret is bound to: it opens nowhere else."""
    return f"secret/{tenant}/{id}"


async def _read(ports: Ports, tenant: str) -> TenantRules:
    record_types = (RecordType.POLICY, RecordType.SECRET)
    seen = await ports.records.collection_revisions(
        [(tenant, record_type) for record_type in record_types]
    )
    [record] = await ports.records.get(tenant, RecordType.POLICY, [POLICY_ID])
    policy = policy_of(record)
    secrets = {
        secret.id: ports.vault.open(secret.body["sealed"], secret_context(tenant, secret.id))
        async for secret in iter_records(ports, tenant, RecordType.SECRET)
    }
    redactor = Redactor({id: value.decode() for id, value in secrets.items()}, policy.redaction)
    collection_revisions = tuple(
        CollectionRevision(tenant, record_type, at)
        for record_type, at in zip(record_types, seen, strict=True)
    )
    return TenantRules(policy, redactor, collection_revisions)
