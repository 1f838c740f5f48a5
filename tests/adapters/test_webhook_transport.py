"""Webhooks over HTTP: signed as sent, and never to an address that is not public."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path as File

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from carrel.adapters.webhook_transport import HttpWebhookSender, is_public
from carrel.core.version import VERSION
from carrel.core.webhooks import PostResult, signature_headers

pytestmark = pytest.mark.anyio

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]
HOSTILE = [
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "0.0.0.0", "0.1.2.3", "100.64.0.1", "100.127.255.255"),
    *("192.0.0.8", "192.0.0.9", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("192.88.99.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "fec0::1"),
    *("ff02::1", "ff0e::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    *("::127.0.0.1", "::ffff:0:127.0.0.1", "2002:7f00:1::", "2002:a9fe:a9fe::"),
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "2001::1", "2001:db8::1"),
    *("3fff::1", "100::1", "5f00::1", "4000::1"),
]
NO_TRUSTED_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
KEY = bytes(range(32))
BODY = b'{"type":"workspace.updated"}'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class ReceivedRequest:
    """One request to a raw server, and the address at which it arrived."""

    head: bytes = b""
    body: bytes = b""
    at: str = ""
    headers: dict[str, str] = field(default_factory=dict)


Responder = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def receiver(
    respond: Responder | None = None, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[ReceivedRequest]]]:
    """A server that reads one request per connection and answers as the test says."""
    requests: list[ReceivedRequest] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")[1:-2]
            headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            requests.append(
                ReceivedRequest(head, body, writer.get_extra_info("sockname")[0], headers)
            )
            await (respond or _ok)(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        server.close()


async def _ok(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    await writer.drain()


class FakeResolver:
    """A resolver that may answer differently each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = answers
        self.queries: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.queries.append(host)
        return self._answers[min(len(self.queries), len(self._answers)) - 1]


async def test_receiver_can_verify_the_signature() -> None:
    async with receiver() as (port, requests), HttpWebhookSender(allow_private=True) as post:
        headers = {
            **signature_headers(KEY, "msg_1", 1_800_000_000_000, BODY),
            "content-type": "x/y",
        }
        posted = await post.send(f"http://127.0.0.1:{port}/hook?a=b%20c", headers, BODY)
    assert (posted.status, posted.problem, posted.ok) == (204, "", True)
    [request] = requests
    assert request.head.startswith(b"POST /hook?a=b%20c HTTP/1.1\r\n")
    assert request.headers["user-agent"] == f"carrel/{VERSION}"
    assert request.headers["host"] == f"127.0.0.1:{port}"
    assert request.headers["content-type"] == "x/y"
    sent = request.headers
    content = f"{sent['webhook-id']}.{sent['webhook-timestamp']}.".encode() + request.body
    mac = base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()
    assert sent["webhook-signature"] == f"v1,{mac}"


@pytest.mark.parametrize("address", HOSTILE)
async def test_address_that_is_not_public_is_refused_in_every_notation(
    address: str,
) -> None:
    assert not is_public(ipaddress.ip_address(address))
    literal = f"[{address.partition('%')[0]}]" if ":" in address else address
    async with HttpWebhookSender(verify=NO_TRUSTED_CERTIFICATES) as post:
        assert await post.refusal_reason(f"http://{literal}:8080/x")
    for others in ([address], ["8.8.8.8", address], [address, "8.8.8.8"]):
        async with HttpWebhookSender(
            resolve=FakeResolver(others), verify=NO_TRUSTED_CERTIFICATES
        ) as post:
            assert "not public" in (await post.refusal_reason("https://innocent.example") or "")
            posted = await post.send("https://innocent.example", {}, BODY)
        assert posted.status is None
        assert "not public" in posted.problem


@pytest.mark.parametrize("address", PUBLIC)
async def test_public_address_is_not_refused(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    async with HttpWebhookSender(resolve=FakeResolver([address])) as post:
        assert await post.refusal_reason("https://receiver.example:8443/hook") is None


@pytest.mark.parametrize(
    "url",
    [
        *("http://localhost/", "http://LOCALHOST.:80/", "http://127.1/", "http://2130706433/"),
        *("http://0x7f000001/", "http://0177.0.0.1/", "http://0/", "http://[::1]:8080/"),
        *("http://[::ffff:7f00:1]/", "http://user:pw@8.8.8.8/", "ftp://8.8.8.8/", "//8.8.8.8/"),
        *("http:///x", "http://", "", "8.8.8.8", "http://[::1", "http://a:b:c/", "http://\x00/"),
        *("http://a" + "b" * 300 + ".example/", "http://8.8.8.8:99999/", "javascript:alert(1)"),
        *("http://no-such-host.invalid/", "http://..example/"),
    ],
)
async def test_address_tricks_are_refused(url: str) -> None:
    async with HttpWebhookSender() as post:
        assert await post.refusal_reason(url)
        posted = await post.send(url, {}, BODY)
    assert posted.status is None
    assert posted.problem


async def test_name_that_resolves_differently_the_second_time_reaches_nothing() -> None:
    async with receiver() as (port, requests):
        names = FakeResolver(["8.8.8.8"], ["127.0.0.1"])
        async with HttpWebhookSender(resolve=names) as post:
            url = f"http://rebinding.example:{port}/"
            assert await post.refusal_reason(url) is None
            posted = await post.send(url, {}, BODY)
        assert "not public" in posted.problem
        assert requests == []


async def test_connection_goes_to_the_address_that_was_checked() -> None:
    """The name is resolved once; any other way of resolving it fails."""
    names = FakeResolver(["127.0.0.2"], ["127.0.0.3"])
    async with receiver(host="0.0.0.0") as (port, requests):
        async with HttpWebhookSender(allow_private=True, resolve=names) as post:
            posted = await post.send(f"http://rebinding.invalid:{port}/", {}, BODY)
        assert posted.ok
        assert [request.at for request in requests] == ["127.0.0.2"]
        assert requests[0].headers["host"] == f"rebinding.invalid:{port}"
    assert names.queries == ["rebinding.invalid"]


async def test_next_address_of_the_host_is_tried_after_a_failed_connection() -> None:
    async with receiver(host="127.0.0.2") as (port, requests):
        names = FakeResolver(["127.0.0.3", "127.0.0.2"])
        async with HttpWebhookSender(allow_private=True, resolve=names) as post:
            assert (await post.send(f"http://two.example:{port}/", {}, BODY)).ok
        assert len(requests) == 1


async def test_redirects_are_results_and_not_followed() -> None:
    async with receiver() as (target_port, requests):

        async def redirect(writer: asyncio.StreamWriter) -> None:
            place = f"Location: http://127.0.0.1:{target_port}/\r\nContent-Length: 0\r\n\r\n"
            writer.write(b"HTTP/1.1 307 Temporary Redirect\r\n" + place.encode())

        async with receiver(redirect) as (port, _), HttpWebhookSender(allow_private=True) as post:
            posted = await post.send(f"http://127.0.0.1:{port}/", {}, BODY)
        assert (posted.status, posted.ok) == (307, False)
        assert requests == []


async def test_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as (proxy, proxied), receiver() as (port, requests):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        async with HttpWebhookSender(allow_private=True) as post:
            assert (await post.send(f"http://127.0.0.1:{port}/", {}, BODY)).ok
        assert (len(requests), proxied) == (1, [])


async def test_silent_receiver_times_out() -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with (
        receiver(silent) as (port, _),
        HttpWebhookSender(allow_private=True, timeout=0.2) as post,
    ):
        posted = await post.send(f"http://127.0.0.1:{port}/", {}, BODY)
    assert (posted.status, posted.problem) == (None, "no response within 0.2 seconds")
    assert 100 < posted.elapsed_ms < 60_000


async def test_receiver_that_drips_its_headers_times_out() -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(10_000):
            writer.write(f"x-{number}: y\r\n".encode())
            await writer.drain()
            await asyncio.sleep(0.02)

    async with (
        receiver(dripping) as (port, _),
        HttpWebhookSender(allow_private=True, timeout=0.3) as post,
    ):
        posted = await post.send(f"http://127.0.0.1:{port}/", {}, BODY)
    assert posted.status is None
    assert posted.elapsed_ms < 60_000


async def test_only_the_beginning_of_a_huge_response_is_read() -> None:
    sent = 0

    async def huge(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while sent < 1_000_000_000:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with receiver(huge) as (port, _), HttpWebhookSender(allow_private=True) as post:
        posted = await post.send(f"http://127.0.0.1:{port}/", {}, BODY)
    assert posted.ok
    assert sent < 100_000_000


async def test_response_counts_once_its_status_has_arrived() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with (
        receiver(slow) as (port, _),
        HttpWebhookSender(allow_private=True, timeout=2) as post,
    ):
        posted = await post.send(f"http://127.0.0.1:{port}/", {}, BODY)
    assert (posted.status, posted.problem) == (201, "")


async def _nonsense(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xffthis is not HTTP\r\n\r\n")


async def _endless_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000)
    await writer.drain()


async def _nothing(writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize("respond", [_nonsense, _endless_head, _nothing])
async def test_any_behaviour_of_a_receiver_is_a_result_without_secrets(respond: Responder) -> None:
    async with (
        receiver(respond) as (port, _),
        HttpWebhookSender(allow_private=True, timeout=3) as post,
    ):
        headers = {"webhook-signature": "v1,SECRET"}
        url = f"http://127.0.0.1:{port}/PATH?token=SECRET"
        posted = await post.send(url, headers, b"SECRET")
    assert posted.status is None
    assert posted.problem
    assert "SECRET" not in posted.problem
    assert "PATH" not in posted.problem


async def test_connection_to_a_closed_port_fails() -> None:
    with socket.socket() as bound:  # reserves the port
        bound.bind(("127.0.0.1", 0))
        async with HttpWebhookSender(allow_private=True) as post:
            posted = await post.send(f"http://127.0.0.1:{bound.getsockname()[1]}/", {}, BODY)
    assert posted == PostResult(None, "connection failed", posted.elapsed_ms)


def create_certificate(directory: File, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS contexts of a server with a certificate for this name, and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain = directory / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return server, ssl.create_default_context(cafile=str(chain))


async def test_certificate_is_checked_against_the_name_and_not_the_address(
    tmp_path: File,
) -> None:
    server, trusting = create_certificate(tmp_path, "receiver.example")
    server_names: list[str | None] = []
    server.sni_callback = lambda _, name, __: server_names.append(name)
    async with receiver(tls=server) as (port, requests):
        names = FakeResolver(["127.0.0.1"])
        async with HttpWebhookSender(allow_private=True, resolve=names, verify=trusting) as post:
            good = await post.send(f"https://receiver.example:{port}/", {}, BODY)
            other = await post.send(f"https://other.example:{port}/", {}, BODY)
        async with HttpWebhookSender(allow_private=True, resolve=names) as post:
            unknown = await post.send(f"https://receiver.example:{port}/", {}, BODY)
    assert (good.status, good.problem) == (204, "")
    assert [problem.problem[:20] for problem in (other, unknown)] == ["invalid certificate:"] * 2
    assert server_names == ["receiver.example", "other.example", "receiver.example"]
    assert len(requests) == 1
