"""Runs one suite on one server in its runtime's environment."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path as File
from typing import Final

from compat.environments import (
    CACHE,
    ROOT,
    lock_file,
    locked_versions,
    normalize,
    prepare_environment,
    update_lock,
)
from compat.results import StoreResult, judge, parse_junit
from compat.servers import LiveServer
from compat.sources import copy_files, load_sources, pin_source
from compat.suite_files import DECLARATION, RESULTS, Suite

TESTS_RAN: Final = (0, 1)
"""Exit codes of pytest after it ran tests: all passed, some failed."""
SHARED: Final = File(__file__).parent / "shared"
"""Modules for all suites."""
_OWN_FILES: Final = shutil.ignore_patterns(DECLARATION, RESULTS, "__pycache__")


class SuiteFailed(Exception):
    """The tests of a suite could not be run; the message has pytest's output."""


def update_pins(suite: Suite) -> None:
    """Pin the newest versions of the suite's environment, and its source distribution."""
    update_lock(suite.runtime)
    if suite.source is not None:
        pin_source(suite.source, suite_version(suite, suite.source))


def suite_version(suite: Suite, package: str | None = None) -> str:
    """Locked version of the suite's package. Raises KeyError if it has none.

    That of a package from npm, with a slash in its name, is in the suite's `package.json`.
    """
    if "/" in suite.package and package is None:
        manifest = json.loads((suite.folder / "package.json").read_text("utf-8"))
        return str(manifest["dependencies"][suite.package])
    return locked_versions(suite.runtime)[normalize(package or suite.package)]


def ensure_pins(suite: Suite) -> None:
    """Pin what a new suite needs."""
    if not lock_file(suite.runtime).exists():
        update_lock(suite.runtime)
    if suite.source is not None and suite.source not in load_sources():
        pin_source(suite.source, suite_version(suite, suite.source))


def run_suite(suite: Suite, server: LiveServer) -> StoreResult:
    """Run the tests in a new directory. Raises SuiteFailed, InstallFailed, SourceUnavailable."""
    python = prepare_environment(suite.runtime)
    folder = CACHE / "runs" / f"{suite.name}-{server.store}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if suite.source is not None:
        copy_files(suite.source, suite.files, folder)
    for own in (SHARED, suite.folder):
        shutil.copytree(own, folder, ignore=_OWN_FILES, dirs_exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    report = folder / "junit.xml"
    options = ["--rootdir=.", "-c", "pytest.ini", "-p", "no:cacheprovider", "-q", "--tb=short"]
    command = [python, "-m", "pytest", *options, f"--junitxml={report}", *suite.pytest]
    log = folder / "output.log"
    code = _run(list(map(str, command)), folder, _environment(suite, server, folder), log)
    if code not in TESTS_RAN or not report.exists():
        raise SuiteFailed(f"pytest ended with {code}\n{_end_of(log)}")
    cases = parse_junit(report.read_text("utf-8"))
    return judge(suite, server.store, suite_version(suite), cases)


def _run(command: list[str], folder: File, environment: dict[str, str], log: File) -> int:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            return process.wait(float(environment["COMPAT_TIMEOUT"]))
        except subprocess.TimeoutExpired:
            raise SuiteFailed(f"no end after {environment['COMPAT_TIMEOUT']} s") from None
        finally:
            process.kill()
            process.wait()


def _environment(suite: Suite, server: LiveServer, folder: File) -> dict[str, str]:
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CARREL_", "PYTEST", "PYTHON", "VIRTUAL_ENV"))
    }
    return variables | {
        "CARREL_URL": server.url,
        "CARREL_TOKEN": server.create_tenant(f"suite-{secrets.token_hex(8)}"),
        "CARREL_STORE": server.store,
        "CARREL_REPOSITORY": str(ROOT),
        "COMPAT_TIMEOUT": str(suite.timeout),
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict(suite.environment),
    }


def _end_of(log: File) -> str:
    return log.read_text("utf-8", "replace")[-6000:]
