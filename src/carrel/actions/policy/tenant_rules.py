"""Policy and redactor of a tenant, cached for use on every write."""

from __future__ import annotations

from dataclasses import dataclass

from carrel.actions.policy.policies import POLICY_ID, policy_from_record
from carrel.actions.records import iter_records
from carrel.core.accounts import SecretRecord
from carrel.core.policy import Policy
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import CollectionRevision, RecordType, decode_body
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class TenantRules:
    policy: Policy
    redactor: Redactor
    collection_revisions: tuple[CollectionRevision, ...]
    """Revisions the rules were computed from; commits made under them expect these."""

    def redact_text(self, text: str) -> str:
        return self.redactor.redact(text.encode()).content.decode()


async def load_rules(ports: Ports, tenant: str) -> TenantRules:
    revision = await ports.records.revision()
    cached: TenantRules | None = ports.record_cache.get(revision, ("rules", tenant))
    if cached is None:
        cached = await _load_uncached(ports, tenant)
        ports.record_cache.put(revision, ("rules", tenant), cached)
    return cached


def find_cached_rules(ports: Ports, tenant: str) -> TenantRules | None:
    """Return the last loaded rules, maybe outdated, or None.

    Use them only for a commit that expects their collection revisions.
    """
    cached: TenantRules | None = ports.record_cache.peek(("rules", tenant))
    return cached


def secret_context(tenant: str, id: str) -> str:
    """Encryption context of a sealed secret."""
    return f"secret/{tenant}/{id}"


async def _load_uncached(ports: Ports, tenant: str) -> TenantRules:
    record_types = (RecordType.POLICY, RecordType.SECRET)
    revisions = await ports.records.collection_revisions(
        [(tenant, record_type) for record_type in record_types]
    )
    [record] = await ports.records.get(tenant, RecordType.POLICY, [POLICY_ID])
    policy = policy_from_record(record)
    secrets = {
        secret.id: ports.vault.open(
            decode_body(secret, SecretRecord).sealed, secret_context(tenant, secret.id)
        )
        async for secret in iter_records(ports, tenant, RecordType.SECRET)
    }
    redactor = Redactor({id: value.decode() for id, value in secrets.items()}, policy.redaction)
    collection_revisions = tuple(
        CollectionRevision(tenant, record_type, revision)
        for record_type, revision in zip(record_types, revisions, strict=True)
    )
    return TenantRules(policy, redactor, collection_revisions)
