"""What a tenant has decided for itself, ready for use on every write: policy and redactor."""

from __future__ import annotations

from dataclasses import dataclass

from carrel.actions.policy.policies import POLICY_ID, policy_of
from carrel.actions.records import each
from carrel.core.policy import Policy
from carrel.core.redaction.redactor import Redactor
from carrel.core.store.record import Noun, Shelf
from carrel.ports import World


@dataclass(frozen=True, slots=True)
class Rules:
    policy: Policy
    redactor: Redactor
    shelves: tuple[Shelf, ...]
    """What these were worked out from: a commit made under them expects it unchanged."""

    def redacted(self, text: str) -> str:
        return self.redactor.redact(text.encode()).content.decode()


async def rules_of(world: World, tenant: str) -> Rules:
    revision = await world.records.revision()
    found: Rules | None = world.memo.find(revision, ("rules", tenant))
    if found is None:
        found = await _read(world, tenant)
        world.memo.keep(revision, ("rules", tenant), found)
    return found


def rules_lately(world: World, tenant: str) -> Rules | None:
    """The rules as they were when somebody last asked, if anybody has: for a commit that expects
    them unchanged."""
    found: Rules | None = world.memo.latest(("rules", tenant))
    return found


def secret_context(tenant: str, id: str) -> str:
    """What a sealed secret is bound to: it opens nowhere else."""
    return f"secret/{tenant}/{id}"


async def _read(world: World, tenant: str) -> Rules:
    nouns = (Noun.POLICY, Noun.SECRET)
    seen = await world.records.shelves([(tenant, noun) for noun in nouns])
    [record] = await world.records.get(tenant, Noun.POLICY, [POLICY_ID])
    policy = policy_of(record)
    secrets = {
        secret.id: world.vault.open(secret.body["sealed"], secret_context(tenant, secret.id))
        async for secret in each(world, tenant, Noun.SECRET)
    }
    redactor = Redactor({id: value.decode() for id, value in secrets.items()}, policy.redaction)
    shelves = tuple(Shelf(tenant, noun, at) for noun, at in zip(nouns, seen, strict=True))
    return Rules(policy, redactor, shelves)
