"""A fuzzer driven by the OpenAPI document finds no undocumented response."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path as File

from tests.support.server_process import TOKEN, serving

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
EXAMPLES = 5
FUZZER = """
import gc
from schemathesis.cli import schemathesis
gc.freeze()
gc.set_threshold(100_000, 50, 1000)
schemathesis()
"""
"""It creates much garbage in few cycles: searching for them took a quarter of its time."""
EXCLUDED_PATHS = r"^/v1/(events|host/workspace/events|tenants|(keys|people)/\{id\})$"
"""Streams do not end, tenants need another token, and a fuzzer that revokes its own key or
deletes its own person has no access afterwards.
"""


PUSH_OPERATIONS = {"GET /git/{repository}/info/refs", "POST /git/{repository}/git-receive-pack"}
"""Operations of a push, which is refused."""


def test_fuzzer_finds_no_crash_and_nothing_undocumented(tmp_path: File) -> None:
    with serving(tmp_path, test_seam="1") as live:
        done = subprocess.run(
            [
                *(sys.executable, "-c", FUZZER, "run", f"{live.url}/openapi.json"),
                *("--header", f"Authorization: Bearer {TOKEN}"),
                *("--exclude-path-regex", EXCLUDED_PATHS),
                *("--checks", ",".join(CHECKS), "--max-examples", str(EXAMPLES)),
                *("--seed", "1", "--workers", "1", "--continue-on-failure", "--no-color"),
                *("--generation-database", "none"),
            ],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    _, failed, details = done.stdout.partition("Authentication failed")
    shut_out = re.findall(r"^ +- (\w+ /\S*)", details.partition("\n\n💡")[0], re.MULTILINE)
    assert bool(failed) == bool(shut_out)
    assert set(shut_out) <= PUSH_OPERATIONS
