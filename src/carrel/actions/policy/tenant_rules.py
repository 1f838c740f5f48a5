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

    def redacted(self, text: str) -> str:
        return self.redactor.redact(text.encode()).content.decode()


async def load_rules(ports: Ports, tenant: str) -> TenantRules:
    revision = await ports.records.revision()
    found: TenantRules | None = ports.memo.find(revision, ("rules", tenant))
    if found is None:
        found = await _read(ports, tenant)
        ports.memo.keep(revision, ("rules", tenant), found)
    return found


def cached_rules(ports: Ports, tenant: str) -> TenantRules | None:
    """The rules as they were when somebody last asked, if anybody has: for a commit that expects
    them unchanged."""
    found: TenantRules | None = ports.memo.latest(("rules", tenant))
    return found


def secret_context(tenant: str, id: str) -> str:
    """What a sealed secret is bound to: it opens nowhere else."""
    return f"secret/{tenant}/{id}"


async def _read(ports: Ports, tenant: str) -> TenantRules:
    nouns = (RecordType.POLICY, RecordType.SECRET)
    seen = await ports.records.shelves([(tenant, noun) for noun in nouns])
    [record] = await ports.records.get(tenant, RecordType.POLICY, [POLICY_ID])
    policy = policy_of(record)
    secrets = {
        secret.id: ports.vault.open(secret.body["sealed"], secret_context(tenant, secret.id))
        async for secret in iter_records(ports, tenant, RecordType.SECRET)
    }
    redactor = Redactor({id: value.decode() for id, value in secrets.items()}, policy.redaction)
    shelves = tuple(
        CollectionRevision(tenant, noun, at) for noun, at in zip(nouns, seen, strict=True)
    )
    return TenantRules(policy, redactor, shelves)
