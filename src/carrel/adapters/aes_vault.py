"""AES-256-GCM vault. The key comes from a setting or from a key file."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path as File
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from carrel.ports import CorruptContent

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_FORMAT: Final = "v1"
_HEX_KEY: Final = re.compile(r"[0-9a-fA-F]{64}")


class InvalidVaultKey(ValueError):
    """The configured vault key is not a valid key. The message never contains it."""


class VaultKeyMismatch(CorruptContent):
    """The value was sealed with a different key."""


class AesGcmVault:
    """Seals values as ``v1.<key fingerprint>.<base64 of nonce and ciphertext>``."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise InvalidVaultKey(f"the vault key must have {KEY_BYTES} bytes")
        self._cipher = AESGCM(key)
        self._repeatable_cipher = AESSIV(hmac.digest(key, b"carrel encrypted", hashlib.sha256))
        self._fingerprint = hmac.digest(key, b"carrel vault key", hashlib.sha256).hex()[:16]

    @classmethod
    def from_text(cls, text: str) -> AesGcmVault:
        """Create a vault from a base64 or hex key. Raises InvalidVaultKey."""
        return cls(_decode_key(text))

    @classmethod
    def from_file(cls, file: File) -> AesGcmVault:
        """Create a vault from a key file, created if absent. Raises InvalidVaultKey."""
        try:
            text = file.read_text("ascii")
        except FileNotFoundError:
            _create_key_file(file)
            text = file.read_text("ascii")
        except UnicodeDecodeError:
            raise InvalidVaultKey(f"{file} does not contain a vault key") from None
        return cls.from_text(text)

    def fingerprint(self) -> str:
        """Return 16 hex digits that identify the key without revealing it."""
        return self._fingerprint

    def seal(self, value: bytes, context: str) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        body = nonce + self._cipher.encrypt(nonce, value, context.encode())
        return f"{_FORMAT}.{self._fingerprint}.{base64.urlsafe_b64encode(body).decode()}"

    def encrypt_repeatably(self, value: str, context: str) -> str:
        body = self._repeatable_cipher.encrypt(value.encode(), [context.encode()])
        return base64.urlsafe_b64encode(body).decode().rstrip("=")

    def decrypt_repeatable(self, encrypted: str, context: str) -> str:
        """Decrypt a encrypted value. Raises CorruptContent."""
        try:
            body = base64.b64decode(encrypted + "=" * (-len(encrypted) % 4), b"-_", validate=True)
            return self._repeatable_cipher.decrypt(body, [context.encode()]).decode()
        except (InvalidTag, ValueError):
            raise CorruptContent("encrypted value is damaged or of another context") from None

    def open(self, sealed: str, context: str) -> bytes:
        """Decrypt a sealed value.

        Raises VaultKeyMismatch for another key, CorruptContent for another context or damaged data.
        """
        version, _, rest = sealed.partition(".")
        fingerprint, _, encoded = rest.partition(".")
        if version != _FORMAT or not encoded:
            raise CorruptContent("sealed value has an unknown format")
        if fingerprint != self._fingerprint:
            raise VaultKeyMismatch(
                f"value was sealed with vault key {fingerprint}, not {self._fingerprint}"
            )
        try:
            body = base64.b64decode(encoded, altchars=b"-_", validate=True)
            return self._cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], context.encode())
        except (InvalidTag, ValueError):
            raise CorruptContent("sealed value is damaged or belongs to another context") from None


def _decode_key(text: str) -> bytes:
    text = text.strip()
    if _HEX_KEY.fullmatch(text):
        return bytes.fromhex(text)
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidVaultKey("the vault key must be base64 or hex") from None


def _create_key_file(file: File) -> None:
    """Create a random key file. When processes race, one key wins and all read it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode() + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        _link_once(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(file.parent)


def _link_once(temporary: File, file: File) -> None:
    """Give the temporary file its name; unlike rename, link never replaces a file."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        return


def _sync_directory(directory: File) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
