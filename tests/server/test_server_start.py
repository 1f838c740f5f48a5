"""What no process needs at its start: what colours a terminal, and whom this machine trusts."""

from __future__ import annotations

import ssl
import subprocess
import sys

import pytest

from carrel_client.httpx_import import tls_verify


@pytest.mark.parametrize("module", ["carrel.wiring.server", "carrel_client"])
def test_neither_a_server_nor_a_client_loads_what_colours_a_terminal(module: str) -> None:
    program = f"import sys, {module}; sys.exit(bool({{'rich', 'pygments'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_client_leaves_httpx_as_others_may_need_it() -> None:
    program = "import carrel_client, httpx._main, httpx; httpx.AsyncClient, httpx._main.main"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_over_plain_http_nobody_is_believed_and_otherwise_whom_this_machine_trusts() -> None:
    for url in ("http://127.0.0.1:8787", "HTTP://carrel.example"):
        nobodys = tls_verify(url)
        assert isinstance(nobodys, ssl.SSLContext)
        assert nobodys.verify_mode == ssl.CERT_REQUIRED
        assert nobodys.check_hostname
        assert nobodys.get_ca_certs() == []
    assert tls_verify("https://carrel.example") is True
