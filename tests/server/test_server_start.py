"""Imports and TLS trust that a process does without at its start."""

from __future__ import annotations

import ssl
import subprocess
import sys

import pytest

from carrel_client.httpx_import import tls_verify


@pytest.mark.parametrize("module", ["carrel.wiring.server", "carrel_client"])
def test_neither_a_server_nor_a_client_imports_rich_or_pygments(module: str) -> None:
    program = f"import sys, {module}; sys.exit(bool({{'rich', 'pygments'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_importing_the_client_leaves_httpx_fully_usable() -> None:
    program = "import carrel_client, httpx._main, httpx; httpx.AsyncClient, httpx._main.main"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_plain_http_trusts_no_ca_and_https_trusts_the_system_store() -> None:
    for url in ("http://127.0.0.1:8787", "HTTP://carrel.example"):
        context = tls_verify(url)
        assert isinstance(context, ssl.SSLContext)
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.get_ca_certs() == []
    assert tls_verify("https://carrel.example") is True
