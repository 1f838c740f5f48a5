"""Policy and redactor of a tenant, cached for use on every write."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from carrel.actions.policy.policy_models import POLICY_ID, policy_from_record
from carrel.actions.records import iter_records
from carrel.core.accounts import SecretRecord
from carrel.core.errors import Refusal, ValidationError
from carrel.core.identifiers import Scope
from carrel.core.policy import Policy
from carrel.core.redaction.redactor import RedactionResult, Redactor
from carrel.core.store.record import CollectionRevision, RecordType, decode_body
from carrel.ports import Ports

Fields = TypeVar("Fields")
_MAX_CACHED_CHARS: Final = 1024
"""Longer texts are redacted without the redactor's cache of short ones."""


@dataclass(frozen=True, slots=True)
class TenantRules:
    policy: Policy
    redactor: Redactor
    collection_revisions: tuple[CollectionRevision, ...]
    """Revisions the rules were computed from; commits made under them expect these."""

    def redact_file(self, scope: Scope, content: bytes) -> RedactionResult:
        """Redact content to store. Raises WorkspaceTooLarge, also if redaction adds too much."""
        limits = self.policy.limits_of(scope)
        limits.check_file_size(len(content))
        result = self.redactor.redact(content)
        limits.check_file_size(len(result.content))
        return result

    def redact_files(
        self, scope: Scope, contents: Sequence[bytes]
    ) -> list[RedactionResult | Refusal]:
        """Redact contents to store like `redact_file`; what that raises stands for the content."""
        limits = self.policy.limits_of(scope)
        results: list[RedactionResult | Refusal] = []
        for content, result in zip(contents, self.redactor.redact_all(contents), strict=True):
            try:
                limits.check_file_size(len(content))
                if result.replaced:
                    limits.check_file_size(len(result.content))
                results.append(result)
            except Refusal as refusal:
                results.append(refusal)
        return results

    def find_texts_with_secrets(self, texts: Sequence[str]) -> frozenset[str]:
        """Texts that would be redacted: those that `require_no_secret` refuses."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        results = self.redactor.redact_all(encoded)
        return frozenset(
            text for text, result in zip(texts, results, strict=True) if result.replaced
        )

    def redact_text(self, text: str) -> str:
        return self.redactor.redact(text.encode()).content.decode()

    def redact_fields(self, fields: Fields) -> Fields:
        """Return what a caller sent with every text redacted, object keys included.

        Call it before validation, since a redacted text may no longer be valid.
        """
        redacted: Fields = self._redact_value(fields)
        return redacted

    def require_no_secret(self, label: str, value: object) -> None:
        """Raise ValidationError if a text would be redacted that must stay as it is.

        Such as a path or a URL: redacted, it would name something else.
        """
        if self.redact_fields(value) != value:
            raise ValidationError(f"{label} contains a secret")

    def _redact_value(self, value: Any) -> Any:
        match value:
            case str() if not isinstance(value, Enum):
                is_long = len(value) > _MAX_CACHED_CHARS
                has_secret = is_long or self.redactor.find_in_text(value)
                return self.redact_text(value) if has_secret else value
            case Mapping():
                return {
                    self._redact_value(name): self._redact_value(item)
                    for name, item in value.items()
                }
            case list() | tuple():
                return type(value)([self._redact_value(item) for item in value])
            case Struct():
                return structs.replace(value, **self._redact_value(structs.asdict(value)))
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                names = [field.name for field in dataclasses.fields(value)]
                fields = {name: self._redact_value(getattr(value, name)) for name in names}
                return dataclasses.replace(value, **fields)
            case _:
                return value


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
