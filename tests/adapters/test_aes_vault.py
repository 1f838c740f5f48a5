"""Sealed values open with the same key and context, and with nothing else."""

from __future__ import annotations

import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.adapters.aes_vault import AesGcmVault, InvalidVaultKey, VaultKeyMismatch
from carrel.ports import CorruptContent

KEY = bytes(range(32))
VAULT = AesGcmVault(KEY)


@given(st.binary(max_size=500), st.text(st.characters(codec="utf-8"), max_size=50))
def test_sealed_value_is_opened_again(value: bytes, context: str) -> None:
    sealed = VAULT.seal(value, context)
    assert sealed.isascii()
    assert VAULT.open(sealed, context) == value


def test_sealing_hides_the_value_and_differs_each_time() -> None:
    first, second = VAULT.seal(b"correct horse", "a"), VAULT.seal(b"correct horse", "a")
    assert first != second
    assert first.startswith(f"v1.{VAULT.fingerprint()}.")
    assert b"correct horse" not in base64.urlsafe_b64decode(first.rpartition(".")[2])


def test_another_context_does_not_open_a_sealed_value() -> None:
    sealed = VAULT.seal(b"value", "secret/acme/token")
    with pytest.raises(CorruptContent):
        VAULT.open(sealed, "secret/globex/token")


def test_another_key_is_reported_as_another_key() -> None:
    other = AesGcmVault(bytes(32))
    with pytest.raises(VaultKeyMismatch, match=other.fingerprint()):
        VAULT.open(other.seal(b"value", "a"), "a")


@pytest.mark.parametrize(
    "damaged",
    ["", "v1", "v1.", "v2.0000.AAAA", f"v1.{VAULT.fingerprint()}.", "no such thing", "v1..é"],
)
def test_value_that_was_never_sealed_is_corrupt(damaged: str) -> None:
    with pytest.raises(CorruptContent):
        VAULT.open(damaged, "a")


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_flipped_bit_is_detected(position: int, mask: int) -> None:
    head, _, text = VAULT.seal(b"some value", "a").rpartition(".")
    body = bytearray(base64.urlsafe_b64decode(text))
    body[position % len(body)] ^= mask
    with pytest.raises(CorruptContent):
        VAULT.open(f"{head}.{base64.urlsafe_b64encode(body).decode()}", "a")


@given(st.integers(min_value=1, max_value=38))
def test_truncation_is_detected(missing: int) -> None:
    head, _, text = VAULT.seal(b"some value", "a").rpartition(".")
    body = base64.urlsafe_b64decode(text)[:-missing]
    with pytest.raises(CorruptContent):
        VAULT.open(f"{head}.{base64.urlsafe_b64encode(body).decode()}", "a")


@pytest.mark.parametrize(
    "text",
    [
        KEY.hex(),
        KEY.hex().upper(),
        base64.b64encode(bytes([251] * 32)).decode(),
        base64.urlsafe_b64encode(bytes([251] * 32)).decode().rstrip("="),
        f" {KEY.hex()}\n",
    ],
)
def test_key_may_be_base64_or_hex(text: str) -> None:
    key = KEY if KEY.hex() in text.lower() else bytes([251] * 32)
    assert AesGcmVault.from_text(text).fingerprint() == AesGcmVault(key).fingerprint()


@pytest.mark.parametrize("text", ["", "short", "é" * 43, "00" * 31, "not base64 at all, sorry!"])
def test_invalid_key_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidVaultKey) as refused:
        AesGcmVault.from_text(text)
    assert not text or text not in str(refused.value)


def test_key_file_is_created_once_and_only_for_its_owner(tmp_path: File) -> None:
    file = tmp_path / "data" / "vault.key"
    vault = AesGcmVault.from_file(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert AesGcmVault.from_file(file).fingerprint() == vault.fingerprint()
    assert os.listdir(file.parent) == ["vault.key"]


def test_concurrent_creators_of_the_key_file_get_the_same_key(tmp_path: File) -> None:
    for number in range(20):
        file = tmp_path / str(number) / "vault.key"
        with ThreadPoolExecutor(8) as pool:
            vaults = list(pool.map(AesGcmVault.from_file, [file] * 8))
        assert len({vault.fingerprint() for vault in vaults}) == 1
        assert os.listdir(file.parent) == ["vault.key"]


def test_key_file_without_a_key_is_refused_and_left_unchanged(tmp_path: File) -> None:
    file = tmp_path / "vault.key"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidVaultKey):
        AesGcmVault.from_file(file)
    assert file.read_bytes() == b"\xff\xfe"
