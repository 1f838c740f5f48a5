"""Writes docs/reference anew from the code: `make docs`. A test fails when a page has drifted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as File
from typing import Final

from carrel.faces.rest.problems import STATUS

REFERENCE: Final = File(__file__).parent / "reference"


def page(title: str, about: str, *parts: str) -> str:
    made = "<!-- Made by `make docs`; change the code instead. -->"
    return "\n\n".join([f"# {title}", made, about, *parts]) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell(each) for each in line)} |" for line in lines)


def cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def refusals() -> str:
    """Every way of saying no, by status."""
    about = (
        "Every way in which Carrel says no. The answer is "
        '`{"error": code, "message": …, "details": {…}}` with this status; the message is for '
        "people and may change, the code is for programs and stays."
    )
    by_status = sorted(STATUS.items(), key=lambda item: (item[1], item[0].code))
    rows = [(status, f"`{kind.code}`", kind.__doc__) for kind, status in by_status]
    return page("Refusals", about, table(["status", "code", "meaning"], rows))


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "refusals.md": refusals,
}


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for name, write in PAGES.items():
        (REFERENCE / name).write_text(write(), "utf-8")


if __name__ == "__main__":
    main()
