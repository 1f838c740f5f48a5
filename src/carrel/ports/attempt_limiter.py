"""Limits failed authentications per client address, in each server process."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from ipaddress import IPv6Address, IPv6Network, ip_address
from math import ceil
from time import monotonic
from typing import Final, TypeVar

from carrel.core.errors import TooManyAttempts, Unauthenticated
from carrel.core.lru_cache import LruCache

Result = TypeVar("Result")

CLIENT_ADDRESS: Final[ContextVar[str]] = ContextVar("carrel_client_address", default="")
"""Address of the client of this request; empty for callers in the same process."""
_UNGUESSABLE: Final = re.compile(
    r"(?:carrel|code)_[\w-]{43}|eyJ[\w-]{10,}\.[\w-]{20,}\.[\w-]{40,}", re.ASCII
)
"""Generated keys and codes, of 256 random bits, and signed tokens of an identity provider."""
_MAX_ADDRESSES: Final = 10_000
_IPV6_PREFIX_BITS: Final = 64


class AttemptLimiter:
    """Leaky bucket of failed attempts for each address, emptied at `per_minute`.

    A valid credential that cannot be guessed is never refused. One that may be guessed, such as a
    token that an operator chose, is refused unchecked while the bucket of its address is full,
    unless it was valid from there before.
    """

    def __init__(self, per_minute: int = 30, now: Callable[[], float] = monotonic) -> None:
        self._max = per_minute
        self._leak_per_second = per_minute / 60
        self._now = now
        self._buckets: LruCache[str, tuple[float, float]] = LruCache(_MAX_ADDRESSES)
        """Level and its time, by address."""
        self._valid_tokens: LruCache[tuple[str, str], bool] = LruCache(_MAX_ADDRESSES)
        """Guessable credentials that were valid, by address."""
        self._pending: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        """Guesses that are being checked, by address."""
        self._networks: LruCache[str, str] = LruCache(_MAX_ADDRESSES)
        """Network of an address, which takes as long to parse as a credential to look up."""

    async def limit(self, credential: str, check: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `check`; count it if it raises Unauthenticated.

        Raises TooManyAttempts once the address has failed too often.
        """
        address = CLIENT_ADDRESS.get()
        if not address or not credential:
            return await check()
        if _UNGUESSABLE.fullmatch(credential) is None:
            attempt = (self._network(address), credential)
            if not await self._is_known(attempt):
                return await self._check_guess(attempt, check)
        try:
            return await check()
        except Unauthenticated:
            self._count_failure((self._network(address), credential))
            raise

    def _count_failure(self, attempt: tuple[str, str]) -> None:
        """Raises TooManyAttempts."""
        self._valid_tokens.remove(attempt)
        self._add(attempt[0])

    async def _is_known(self, attempt: tuple[str, str]) -> bool:
        """Return whether the token was valid here before; if not, wait until it may be checked.

        A guess waits while the guesses in progress would fill the bucket if all of them failed.
        Raises TooManyAttempts.
        """
        address = attempt[0]
        while not self._valid_tokens.get(attempt):
            level, _ = self._level(address)
            self._require_room(level)
            pending = self._pending[address]
            if level + len(pending) + 1 <= self._max:
                return False
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        return True

    async def _check_guess(
        self, attempt: tuple[str, str], check: Callable[[], Awaitable[Result]]
    ) -> Result:
        address = attempt[0]
        end = asyncio.get_running_loop().create_future()
        self._pending[address].add(end)
        try:
            result = await check()
        except Unauthenticated:
            self._count_failure(attempt)
            raise
        else:
            self._valid_tokens.put(attempt, True)
            return result
        finally:
            self._pending[address].discard(end)
            if not self._pending[address]:
                del self._pending[address]
            end.set_result(None)

    def _network(self, address: str) -> str:
        network = self._networks.get(address)
        if network is None:
            network = _network_of(address)
            self._networks.put(address, network)
        return network

    def _add(self, address: str) -> None:
        level, now = self._level(address)
        self._require_room(level)
        self._buckets.put(address, (level + 1, now))

    def _require_room(self, level: float) -> None:
        if level + 1 > self._max:
            seconds = ceil((level + 1 - self._max) / self._leak_per_second)
            raise TooManyAttempts(
                f"too many failed attempts; try again in {seconds} s", retryAfterSeconds=seconds
            )

    def _level(self, address: str) -> tuple[float, float]:
        now = self._now()
        level, since = self._buckets.get(address) or (0.0, now)
        return max(level - (now - since) * self._leak_per_second, 0.0), now


def _network_of(address: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address: one client has all of it."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(IPv6Network((int(parsed), _IPV6_PREFIX_BITS), strict=False))
    return address
