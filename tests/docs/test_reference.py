"""The generated pages say what the code says."""

from __future__ import annotations

import pytest
from docs.generate import PAGES, REFERENCE


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_has_not_drifted(name: str) -> None:
    written = (REFERENCE / name).read_text("utf-8")
    assert written == PAGES[name](), "run `make docs`"


def test_every_reference_page_is_generated() -> None:
    assert {file.name for file in REFERENCE.iterdir()} == set(PAGES)
