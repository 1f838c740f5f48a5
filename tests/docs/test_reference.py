"""The generated pages are up to date."""

from __future__ import annotations

import pytest
from docs.generate import PAGES, REFERENCE


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_is_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text("utf-8")
    assert written == PAGES[name](), "run `make docs`"


def test_every_reference_page_is_generated() -> None:
    assert {file.name for file in REFERENCE.iterdir()} == set(PAGES)
