"""Records of accounts: stored keys, and keys that older records lack."""

from __future__ import annotations

from carrel.core.access import CredentialKind, Permission, Role
from carrel.core.accounts import KeyRecord, PersonRecord, key_from_record, person_from_record
from carrel.core.store.record import Record, RecordType, encode_body


def test_a_key_is_stored_with_all_its_keys() -> None:
    key = KeyRecord(
        "ci",
        CredentialKind.SERVICE,
        scopes=[Permission.TENANT_READ],
        hash="h",
        prefix="car",
        creators=["key_0"],
    )
    body = encode_body(key)
    assert body == {
        "name": "ci",
        "kind": "service",
        "personId": None,
        "agentId": None,
        "workspace": None,
        "scopes": ["tenant:read"],
        "hash": "h",
        "expires": 0,
        "prefix": "car",
        "creators": ["key_0"],
    }
    assert key_from_record(Record("acme", RecordType.KEY, "key_1", 1, body, 0, 0)) == key


def test_a_key_expires_at_its_time_and_never_without_one() -> None:
    assert not KeyRecord("ci", CredentialKind.SERVICE).is_expired(10**15)
    expiring = KeyRecord("ci", CredentialKind.SERVICE, expires=5)
    assert (expiring.is_expired(4), expiring.is_expired(5)) == (False, True)


def test_a_person_without_a_sign_in_stores_no_subject() -> None:
    ada = PersonRecord("Ada", "ada@acme.example", Role.OWNER)
    assert "subject" not in encode_body(ada)
    bare = {"name": "Ada", "email": "ada@acme.example", "role": "owner", "later": 1}
    record = Record("acme", RecordType.PERSON, "per_1", 1, bare, 0, 0)
    assert person_from_record(record) == ada
    assert encode_body(ada, record)["later"] == 1
