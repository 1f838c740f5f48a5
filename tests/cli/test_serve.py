"""What `carrel serve` prints: secrets on a terminal only."""

from __future__ import annotations

import os
import pty
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path as File

import httpx
import pytest
from tests.support.server_process import CARREL, PLAIN, TOKEN, environment

LINK = re.compile(r"http://\S+/sign-in#(code=\S+)")


@contextmanager
def serving(data: File, *, terminal: bool, token: str = "") -> Iterator[str]:
    """Text that a server has printed once it serves."""
    variables = environment(data, port="0", log_level="error") | {"CARREL_OWNER_TOKEN": token}
    read_end, write_end = pty.openpty() if terminal else os.pipe()
    run = [sys.executable, "-c", CARREL, "serve"]
    with subprocess.Popen(run, env=variables, stdout=write_end) as process:
        os.close(write_end)
        try:
            text = ""
            while not (address := re.search(r"(http://[\d.]+:\d+)\s", text)):
                text += os.read(read_end, 1000).decode()
            httpx.get(f"{address[1]}/readyz", verify=PLAIN, timeout=60).raise_for_status()
            os.set_blocking(read_end, False)
            with suppress(BlockingIOError):
                text += os.read(read_end, 10_000).decode()
            yield text
        finally:
            process.kill()
            os.close(read_end)


def test_a_terminal_shows_the_link_and_a_generated_token(tmp_path: File) -> None:
    with serving(tmp_path, terminal=True) as text:
        assert LINK.search(text)
        assert re.search(r"Owner token +carrel_\S{40,}", text)
    assert not {"sign-in-link", "owner-token"} & set(os.listdir(tmp_path))


def test_secrets_are_in_private_files_if_the_output_is_a_log(tmp_path: File) -> None:
    files = [tmp_path / "sign-in-link", tmp_path / "owner-token"]
    with serving(tmp_path, terminal=False) as text:
        secrets = [file.read_text().strip() for file in files]
        assert LINK.fullmatch(secrets[0])
        assert secrets[1].startswith("carrel_")
        for file, secret in zip(files, secrets, strict=True):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert f"in {file} " in text
            assert secret not in text
    with serving(tmp_path, terminal=False) as again:
        assert "Owner token" not in again
    assert files[0].read_text().strip() != secrets[0]
    assert files[1].read_text().strip() == secrets[1]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_chosen_token_is_printed_nowhere(tmp_path: File, terminal: bool) -> None:
    with serving(tmp_path, terminal=terminal, token=TOKEN) as text:
        assert "Sign-in link" in text
        assert TOKEN not in text
        assert "Owner token" not in text
    assert not (tmp_path / "owner-token").exists()
