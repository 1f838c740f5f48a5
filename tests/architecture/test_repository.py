"""What must stay true of the files around the code."""

from __future__ import annotations

import re
from pathlib import Path as File

import pytest

ROOT = File(__file__).parents[2]
ROOMS = ("src", "tests", "bench", "docs", ".ci")
KINDS = {"", ".cfg", ".css", ".html", ".json", ".lock", ".md", ".py", ".sh", ".sql", ".svg"}
KINDS |= {".toml", ".ts", ".tsx", ".txt", ".yaml", ".yml"}
PASSING = {"__pycache__", "results"}


def ours() -> list[File]:
    found = [file for file in ROOT.iterdir() if file.name != ".git"]
    found += [file for room in ROOMS for file in (ROOT / room).rglob("*")]
    files = [file for file in found if file.is_file() and file.suffix in KINDS]
    return sorted(file for file in files if not PASSING & set(file.parts))


# Somebody's own directories: what stands there on one machine stands on no other.
PERSONAL = re.compile(r"(?<![\w.])/(?:root|work|home/\w+|Users/\w+)/")


def test_no_file_names_a_place_of_one_machine() -> None:
    assert not [str(file) for file in ours() if PERSONAL.search(file.read_text("utf-8"))]


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_names_no_registry_and_hashes_everything(name: str) -> None:
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


def test_no_two_decisions_have_one_number() -> None:
    numbers = [file.name[:4] for file in (ROOT / "docs/decisions").glob("*.md")]
    assert all(re.fullmatch("[0-9]{4}", number) for number in numbers)
    assert len(numbers) == len(set(numbers))


LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_every_link_between_pages_leads_somewhere() -> None:
    index_keys = [(page, link) for page in PAGES for link in LINK.findall(page.read_text("utf-8"))]
    assert not [(str(page), link) for page, link in index_keys if not (page.parent / link).exists()]
