"""Errors at a terminal name the port, the host, the database and the unknown variable."""

from __future__ import annotations

import socket

import pytest
from tests.client.cli_runner import run_command as carrel

from carrel.cli.unknown_variables import unknown_variables


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        failed = carrel("serve", port=port)
    assert failed.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}: another program uses the port" in failed.stderr
    assert "CARREL_PORT" in failed.stderr


@pytest.mark.parametrize("host", ["203.0.113.5", "no-such-host.invalid"])
def test_a_wrong_host_is_named(host: str) -> None:
    failed = carrel("serve", host=host, port="0")
    assert failed.returncode == 1
    assert f"cannot listen on {host} port 0: " in failed.stderr
    assert "CARREL_HOST" in failed.stderr


def test_an_unreachable_database_is_named_without_its_password() -> None:
    url = "postgresql://carrel:hunter2-hunter2@127.0.0.1:1/books"
    failed = carrel("serve", database_url=url, port="0")
    assert failed.returncode == 1
    assert "database books at 127.0.0.1:1" in failed.stderr
    assert "hunter2" not in failed.stderr


def test_an_unknown_variable_is_named_with_the_similar_setting() -> None:
    answer = carrel("version", potr="1")
    assert answer.returncode == 0
    assert "warning: CARREL_POTR is not a setting; did you mean CARREL_PORT?" in answer.stderr
    names = ["CARREL_PORT", "CARREL_TEST_SERVICES", "CARREL_CONFIG"]
    assert unknown_variables(names) == []
    assert unknown_variables(["CARREL_ZZZZZZ"]) == [("CARREL_ZZZZZZ", None)]
