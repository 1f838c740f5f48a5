"""Rules of the files around the code."""

from __future__ import annotations

import re
from pathlib import Path as File

import pytest

ROOT = File(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "compat", "docs", ".ci")
KINDS = {"", ".cfg", ".css", ".html", ".json", ".lock", ".md", ".py", ".sh", ".sql", ".svg"}
KINDS |= {".toml", ".ts", ".tsx", ".txt", ".yaml", ".yml"}
GENERATED = {"__pycache__", "results"}


def own_files() -> list[File]:
    files_ = [file for file in ROOT.iterdir() if file.name != ".git"]
    files_ += [file for folder in FOLDERS for file in (ROOT / folder).rglob("*")]
    files = [file for file in files_ if file.is_file() and file.suffix in KINDS]
    return sorted(file for file in files if not GENERATED & set(file.parts))


# Home directories and other paths of one machine.
PERSONAL = re.compile(r"(?<![\w.])/(?:root|work|home/\w+|Users/\w+)/")


def test_no_file_has_a_path_of_one_machine() -> None:
    assert not [str(file) for file in own_files() if PERSONAL.search(file.read_text("utf-8"))]


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock_has_no_registry_and_hashes_everything(name: str) -> None:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    assert not [line for line in lines if "://" in line or line.startswith(("-", "#", "file:"))]
    for number, line in enumerate(lines):
        if not line.startswith(" "):
            assert lines[number + 1].strip().startswith("--hash=sha256:"), line


def test_both_locks_agree() -> None:
    runtime, development = (
        set(re.findall(r"^\S+==\S+", (ROOT / name).read_text("utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert runtime
    assert runtime <= development


def test_decision_numbers_are_unique() -> None:
    numbers = [file.name[:4] for file in (ROOT / "docs/decisions").glob("*.md")]
    assert all(re.fullmatch("[0-9]{4}", number) for number in numbers)
    assert len(numbers) == len(set(numbers))


LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_every_link_between_pages_has_a_target() -> None:
    index_keys = [(page, link) for page in PAGES for link in LINK.findall(page.read_text("utf-8"))]
    assert not [(str(page), link) for page, link in index_keys if not (page.parent / link).exists()]
