"""Posting to webhooks over HTTP, to public addresses only unless told otherwise.

The host is looked up once, every address it has is judged, and the connection goes to one that
was judged: a name that changes its mind in between leads nowhere.
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

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to all its addresses. Raises OSError."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MOST_READ: Final = 64 * 1024
_LONGEST_READ: Final = 2.0
_MOST_TRIED: Final = 3
_AGENT: Final = {"user-agent": f"carrel/{VERSION}"}
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL: Final = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20"))
)
"""What is set aside for protocols and examples, and older tables call global."""


@cache
def _usual_tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


class _AddressRefused(Exception):
    """This address is not to be posted to; the message says why."""


class HttpWebhookSender:
    """Use it as a context, so that nothing stays open."""

    def __init__(
        self,
        allow_private: bool = False,
        timeout: float = 10,
        *,
        resolve: Resolve | None = None,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(8, "carrel-dns")
        self._resolve = resolve or self._look_up
        self._client = httpx.AsyncClient(
            verify=verify or _usual_tls(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 4)),
            # A connection belongs to the name it was made for, though others share its address.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def refusal_reason(self, url: str) -> str | None:
        try:
            parsed = _parsed(url)
            if not self._allow_private:
                async with asyncio.timeout(self._timeout):
                    await self._addresses(parsed)
        except _AddressRefused as refused:
            return str(refused)
        except TimeoutError:
            return "the host cannot be found in time"
        return None

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        began = perf_counter()
        status, problem = None, ""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._post(_parsed(url), {**headers, **_AGENT}, body)
            status = response.status_code
            await _drain(response)
        except _AddressRefused as refused:
            problem = str(refused)
        except (TimeoutError, httpx.TimeoutException):
            problem = f"no answer within {self._timeout:g} seconds"
        except (httpx.HTTPError, ssl.SSLError, OSError) as wrong:
            problem = _told(wrong)
        return PostResult(status, problem, round((perf_counter() - began) * 1000))

    async def _post(
        self, url: httpx.URL, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        """What the first of the host's addresses that can be reached answers, not read yet."""
        addresses = (await self._addresses(url))[:_MOST_TRIED]
        for last, address in enumerate(addresses, 1 - len(addresses)):
            try:
                return await self._post_to(address, url, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if not last:
                    raise
        raise _AddressRefused("the host cannot be found")

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

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        """All addresses of the host, in the order in which they should be tried."""
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            found = await self._resolve(url.raw_host.decode("ascii"), port)
            addresses = [ipaddress.ip_address(each) for each in dict.fromkeys(found)]
        except (OSError, ValueError):
            raise _AddressRefused("the host cannot be found") from None
        if not self._allow_private and not all(map(is_public, addresses)):
            raise _AddressRefused("the host is at an address that is not public")
        return addresses

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        """In threads of its own, so that slow name servers hold up nothing else."""
        loop = asyncio.get_running_loop()
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(self._threads, ask)
        return [str(address[0]) for *_, address in found]


def is_public(address: Address) -> bool:
    """Whether this is an ordinary address of the internet, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    special = any(address in net for net in _SPECIAL if net.version == address.version)
    return address.is_global and not (special or address.is_multicast or address.is_reserved)


def _parsed(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise _AddressRefused("it is not a URL") from None
    if parsed.scheme not in {"http", "https"} or not parsed.raw_host:
        raise _AddressRefused("it is not an http or https URL")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise _AddressRefused("it has no possible port")
    if parsed.userinfo:
        raise _AddressRefused("it holds a user name or a password")
    return parsed


async def _drain(response: httpx.Response) -> None:
    """Read what a decent receiver says, so that it is not cut off; how it ends is no matter."""
    left = _MOST_READ
    try:
        async with asyncio.timeout(_LONGEST_READ):
            async for chunk in response.aiter_raw(8192):
                left -= len(chunk)
                if left <= 0:
                    return
    except (httpx.HTTPError, OSError):
        return
    finally:
        await response.aclose()


def _told(wrong: BaseException) -> str:
    """What may be said of a failure: what kind it was, and nothing that was sent."""
    seen: BaseException | None = wrong
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f"the certificate is not good: {seen.verify_message}"
        if isinstance(seen, ssl.SSLError):
            return "no secure connection could be made"
        seen = seen.__cause__ or seen.__context__
    if isinstance(wrong, httpx.ConnectError):
        return "no connection could be made"
    if isinstance(wrong, httpx.RemoteProtocolError | httpx.DecodingError):
        return "the answer was not HTTP"
    return "the connection was lost"
