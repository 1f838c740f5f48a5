"""Records of accounts: tenants, people, API keys, sign-in codes and secrets."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from carrel.core.access import CredentialKind, Permission, Role
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record, decode_body


class TenantRecord(Struct, frozen=True, rename="camel"):
    slug: str
    name: str


class FormerProfile(Struct, frozen=True):
    """Name and e-mail address that a person had."""

    name: str
    email: str


class PersonRecord(Struct, frozen=True, rename="camel"):
    name: str
    email: str
    role: Role
    title: str | None = None
    timezone: str | None = None
    pronouns: str | None = None
    subject: str | UnsetType = UNSET
    """OIDC issuer and subject of a person who signed in that way."""
    former: list[FormerProfile] | UnsetType = UNSET
    """Earlier names and addresses, oldest first, to be erased with the person."""

    @property
    def profiles(self) -> list[FormerProfile]:
        """Names and addresses, the current ones last."""
        return [*(self.former or ()), FormerProfile(self.name, self.email)]


class KeyRecord(Struct, frozen=True, rename="camel"):
    name: str
    kind: CredentialKind
    person_id: str | None = None
    agent_id: str | None = None
    workspace: str | None = None
    scopes: list[Permission] | None = None
    """None grants everything the holder may do."""
    hash: str = ""
    expires: TimestampMs = 0
    """0 if it does not expire."""
    prefix: str = ""
    """First characters of the token."""
    creators: list[str] = []
    """Ids of the key that created it, and of the keys that created that one, first to last."""

    def is_expired(self, now: TimestampMs) -> bool:
        return bool(self.expires) and now >= self.expires


class SignInCodeRecord(Struct, frozen=True, rename="camel"):
    person_id: str
    expires: TimestampMs
    invited_by: str = ""
    """Person who invited the holder; empty for a code that the operator's server printed."""
    key_expires: TimestampMs = 0
    """Latest end of the key it is exchanged for, that of the inviter's key; 0 without one."""
    scopes: list[Permission] | None = None
    """Scopes of the key it is exchanged for; None grants everything the holder may do."""
    creators: list[str] = []
    """Creators of the key it is exchanged for: the inviter's key and its creators."""


class SecretRecord(Struct, frozen=True, rename="camel"):
    sealed: str


class VaultRecord(Struct, frozen=True, rename="camel"):
    fingerprint: str


def tenant_from_record(record: Record) -> TenantRecord:
    return decode_body(record, TenantRecord)


def person_from_record(record: Record) -> PersonRecord:
    return decode_body(record, PersonRecord)


def key_from_record(record: Record) -> KeyRecord:
    return decode_body(record, KeyRecord)
