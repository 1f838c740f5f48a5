"""Encryption of stored secrets."""

from __future__ import annotations

from typing import Protocol


class Vault(Protocol):
    """Encrypts values at rest."""

    def fingerprint(self) -> str:
        """Return an identifier of the key that reveals nothing else about it."""

    def seal(self, value: bytes, context: str) -> str:
        """Encrypt; only the same context can decrypt."""

    def encrypt_repeatably(self, value: str, context: str) -> str:
        """Encrypt so that equal values look equal; only the same context can reveal it.

        Returns letters, digits, `-` and `_`.
        """

    def decrypt_repeatable(self, encrypted: str, context: str) -> str:
        """Decrypt a encrypted value. Raises CorruptContent."""

    def open(self, sealed: str, context: str) -> bytes:
        """Decrypt. Raises CorruptContent if the key or the context differs."""
