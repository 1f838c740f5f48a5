"""Encryption of stored secrets."""

from __future__ import annotations

from typing import Protocol


class Vault(Protocol):
    """Encrypts values at rest."""

    def fingerprint(self) -> str:
        """Return an identifier of the key that reveals nothing else about it."""

    def seal(self, value: bytes, context: str) -> str:
        """Encrypt; only the same context can decrypt."""

    def open(self, sealed: str, context: str) -> bytes:
        """Decrypt. Raises CorruptContent if the key or the context differs."""
