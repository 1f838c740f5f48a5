"""Published source distributions of upstream suites, pinned by digest in `sources.lock`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import ssl
import tarfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path as File
from typing import Final
from urllib.parse import urljoin

import httpx

from compat.environments import CACHE, normalize

LOCK: Final = File(__file__).parent / "sources.lock"
INDEX: Final = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("PIP_INDEX_URL")
INDEX_URL: Final = INDEX or "https://pypi.org/simple"
_LINE: Final = re.compile(r"^(\S+)==(\S+) --hash=sha256:([0-9a-f]{64})$")
_LINK: Final = re.compile(r'href="([^"#]+/([^/"#]+\.tar\.gz))(?:#sha256=([0-9a-f]{64}))?[^"]*"')


class SourceUnavailable(Exception):
    """A source distribution is not pinned, not published or not the pinned one."""


@dataclass(frozen=True, slots=True)
class PinnedSource:
    """A source distribution with the digest of its archive."""

    package: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"


def parse_sources(text: str) -> dict[str, PinnedSource]:
    """Raises ValueError for a line that is not a pin."""
    pins = {}
    for line in filter(None, text.splitlines()):
        match = _LINE.match(line)
        if match is None:
            raise ValueError(f"not a pinned source: {line}")
        pins[match[1]] = PinnedSource(match[1], match[2], match[3])
    return pins


def load_sources() -> dict[str, PinnedSource]:
    return parse_sources(LOCK.read_text("utf-8")) if LOCK.exists() else {}


def pin_source(package: str, version: str) -> None:
    """Pin the published source distribution of a version."""
    url, sha256 = _published(package, version)
    sha256 = sha256 or hashlib.sha256(_get(url).content).hexdigest()
    pins = load_sources() | {package: PinnedSource(package, version, sha256)}
    LOCK.write_text("".join(f"{pins[name]}\n" for name in sorted(pins)), "utf-8")


def copy_files(package: str, patterns: tuple[str, ...], target: File) -> None:
    """Copy files of a pinned source distribution that match patterns.

    Raises SourceUnavailable, also if a pattern matches nothing.
    """
    root = _unpacked(package)
    for pattern in patterns:
        files = [file for file in root.rglob("*") if file.is_file()]
        names = {file: file.relative_to(root).as_posix() for file in files}
        matched = {file: name for file, name in names.items() if fnmatchcase(name, pattern)}
        if not matched:
            raise SourceUnavailable(f"{package} has no file {pattern}")
        for file, name in matched.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / name)


def _unpacked(package: str) -> File:
    pin = load_sources().get(package)
    if pin is None:
        raise SourceUnavailable(f"{package} is not pinned; run make compat ARGS=--update")
    folder = CACHE / "sources" / pin.sha256
    if not folder.exists():
        archive = folder.with_suffix(".tar.gz")
        folder.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(_verified(pin))
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()
    [root] = folder.iterdir()
    return root


def _verified(pin: PinnedSource) -> bytes:
    url, _ = _published(pin.package, pin.version)
    content = _get(url).content
    if hashlib.sha256(content).hexdigest() != pin.sha256:
        raise SourceUnavailable(f"{pin.package} {pin.version} differs from its pinned digest")
    return content


def _published(package: str, version: str) -> tuple[str, str | None]:
    page = f"{INDEX_URL.rstrip('/')}/{normalize(package)}/"
    for url, name, sha256 in _LINK.findall(_get(page).text):
        stem = name.removesuffix(".tar.gz")
        if normalize(stem) == normalize(f"{package}-{version}"):
            return urljoin(page, url), sha256 or None
    raise SourceUnavailable(f"{package} {version} has no source distribution")


def _get(url: str) -> httpx.Response:
    headers = {"Accept": "text/html, */*;q=0.1"}
    context = ssl.create_default_context()
    response = httpx.get(url, headers=headers, verify=context, follow_redirects=True, timeout=60)
    return response.raise_for_status()
