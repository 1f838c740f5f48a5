"""Transport of webhooks: one POST, by default to public addresses only.

The host is resolved once, all its addresses are checked, and the connection goes to a checked
address. So DNS rebinding cannot redirect it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from time import perf_counter
from types import TracebackType
from typing import Final, Self

import httpx

from carrel.core.version import VERSION
from carrel.core.webhooks import PostResult

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves (host, port) to all its addresses. Raises OSError."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MAX_DRAIN_BYTES: Final = 64 * 1024
_DRAIN_TIMEOUT_SECONDS: Final = 2.0
_MAX_ADDRESSES: Final = 3
_USER_AGENT: Final = {"user-agent": f"carrel/{VERSION}"}
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL_PURPOSE: Final = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20"))
)
"""Networks reserved for protocols and examples that older tables call global."""


@cache
def _default_tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


class _AddressRefused(Exception):
    """The URL must not be posted to; the message is the reason."""


class HttpWebhookSender:
    """WebhookSender port. Use as an async context manager to close connections."""

    def __init__(
        self,
        allow_private: bool = False,
        timeout: float = 10,
        *,
        resolve: Resolver | None = None,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(8, "carrel-dns")
        self._resolve = resolve or self._resolve_in_thread
        self._client = httpx.AsyncClient(
            verify=verify or _default_tls_context(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 4)),
            # URLs hold addresses, so a pooled connection could be reused for another host name.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def refusal_reason(self, url: str) -> str | None:
        try:
            parsed = _parse_url(url)
            if not self._allow_private:
                async with asyncio.timeout(self._timeout):
                    await self._resolve_addresses(parsed)
        except _AddressRefused as refused:
            return str(refused)
        except TimeoutError:
            return "host name lookup timed out"
        return None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        started = perf_counter()
        status, problem = None, ""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._post(_parse_url(url), {**headers, **_USER_AGENT}, body)
            status = response.status_code
            await _drain(response)
        except _AddressRefused as refused:
            problem = str(refused)
        except (TimeoutError, httpx.TimeoutException):
            problem = f"no response within {self._timeout:g} seconds"
        except (httpx.HTTPError, ssl.SSLError, OSError) as error:
            problem = _describe_failure(error)
        return PostResult(status, problem, round((perf_counter() - started) * 1000))

    async def _post(
        self, url: httpx.URL, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        """Post to the first reachable address; the response body is not read yet."""
        addresses = (await self._resolve_addresses(url))[:_MAX_ADDRESSES]
        for remaining, address in enumerate(addresses, 1 - len(addresses)):
            try:
                return await self._post_to(address, url, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if not remaining:
                    raise
        raise _AddressRefused("host not found")

    async def _post_to(
        self, address: Address, url: httpx.URL, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        name = url.raw_host.decode("ascii")
        request = self._client.build_request(
            "POST",
            url.copy_with(host=str(address)),
            headers={**headers, "host": url.netloc.decode("ascii")},
            content=body,
            extensions={"sni_hostname": name},
        )
        return await self._client.send(request, stream=True)

    async def _resolve_addresses(self, url: httpx.URL) -> list[Address]:
        """Return all addresses of the host in the order to try. Raises _AddressRefused."""
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            hosts = await self._resolve(url.raw_host.decode("ascii"), port)
            addresses = [ipaddress.ip_address(host) for host in dict.fromkeys(hosts)]
        except (OSError, ValueError):
            raise _AddressRefused("host not found") from None
        if not self._allow_private and not all(map(is_public, addresses)):
            raise _AddressRefused("host has an address that is not public")
        return addresses

    async def _resolve_in_thread(self, host: str, port: int) -> Sequence[str]:
        """Resolve in a dedicated thread pool, so that slow DNS blocks nothing else."""
        loop = asyncio.get_running_loop()
        lookup = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        results = await loop.run_in_executor(self._threads, lookup)
        return [str(address[0]) for *_, address in results]


def is_public(address: Address) -> bool:
    """Whether the address, unwrapped from IPv4-in-IPv6 forms, is globally routable."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _GLOBAL_UNICAST:
            return False
    special = any(address in net for net in _SPECIAL_PURPOSE if net.version == address.version)
    return address.is_global and not (special or address.is_multicast or address.is_reserved)


def _parse_url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise _AddressRefused("not a URL") from None
    if parsed.scheme not in {"http", "https"} or not parsed.raw_host:
        raise _AddressRefused("not an http or https URL")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise _AddressRefused("invalid port")
    if parsed.userinfo:
        raise _AddressRefused("URL must not contain a user name or a password")
    return parsed


async def _drain(response: httpx.Response) -> None:
    """Discard a bounded part of the response and close it, ignoring errors."""
    remaining = _MAX_DRAIN_BYTES
    try:
        async with asyncio.timeout(_DRAIN_TIMEOUT_SECONDS):
            async for chunk in response.aiter_raw(8192):
                remaining -= len(chunk)
                if remaining <= 0:
                    return
    except (httpx.HTTPError, OSError):
        return
    finally:
        await response.aclose()


def _describe_failure(error: BaseException) -> str:
    """Describe a failure by its kind, without any content that was sent."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"invalid certificate: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "TLS handshake failed"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.ConnectError):
        return "connection failed"
    if isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError):
        return "invalid HTTP response"
    return "connection lost"
