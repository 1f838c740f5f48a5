"""Sealing values with AES-256-GCM, under a key from a setting or from a file of our own."""

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
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carrel.ports import CorruptContent

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_FORM: Final = "v1"
_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")


class VaultKeyUnusable(ValueError):
    """What was given as the vault's key is none; the message does not repeat it."""


class VaultKeyMismatch(CorruptContent):
    """What was sealed under one key was to be opened with another."""


class AesGcmVault:
    """A sealed text is ``v1.<fingerprint of the key>.<nonce and ciphertext>``."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise VaultKeyUnusable(f"the vault's key must have {KEY_BYTES} bytes")
        self._cipher = AESGCM(key)
        self._fingerprint = hmac.digest(key, b"carrel vault key", hashlib.sha256).hex()[:16]

    @classmethod
    def of(cls, text: str) -> AesGcmVault:
        """A vault whose key is written in base64 or hex. Raises VaultKeyUnusable."""
        return cls(_decoded(text))

    @classmethod
    def at(cls, file: File) -> AesGcmVault:
        """A vault whose key is in a file, which is made where there is none."""
        try:
            text = file.read_text("ascii")
        except FileNotFoundError:
            _make_key(file)
            text = file.read_text("ascii")
        except UnicodeDecodeError:
            raise VaultKeyUnusable(f"{file} does not hold a key of the vault") from None
        return cls.of(text)

    def fingerprint(self) -> str:
        """What tells this key from others, and nothing else about it."""
        return self._fingerprint

    def seal(self, value: bytes, context: str) -> str:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        body = nonce + self._cipher.encrypt(nonce, value, context.encode())
        return f"{_FORM}.{self._fingerprint}.{base64.urlsafe_b64encode(body).decode()}"

    def open(self, sealed: str, context: str) -> bytes:
        """Raises VaultKeyMismatch for another key, Corrupt for another context or damage."""
        form, _, rest = sealed.partition(".")
        fingerprint, _, text = rest.partition(".")
        if form != _FORM or not text:
            raise CorruptContent("a sealed value is not in a form that this version knows")
        if fingerprint != self._fingerprint:
            raise VaultKeyMismatch(
                f"a value was sealed under the vault key {fingerprint}, not {self._fingerprint}"
            )
        try:
            body = base64.b64decode(text, altchars=b"-_", validate=True)
            return self._cipher.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], context.encode())
        except (InvalidTag, ValueError):
            raise CorruptContent(
                "a sealed value is damaged, or was sealed for something else"
            ) from None


def _decoded(text: str) -> bytes:
    text = text.strip()
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise VaultKeyUnusable("the vault's key must be base64 or hex") from None


def _make_key(file: File) -> None:
    """Of several processes that do this at once one wins; all then read the winner's key."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode() + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        _name_once(aside, file)
    finally:
        aside.unlink(missing_ok=True)
    _sync(file.parent)


def _name_once(aside: File, file: File) -> None:
    """A link, unlike a rename, never takes the place of what is there."""
    try:
        os.link(aside, file)
    except FileExistsError:
        return


def _sync(directory: File) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
