"""The guide of the runtime works as documented."""

from __future__ import annotations

import os

from guide_page import run_page


def test_code_of_the_guide_runs() -> None:
    run_page(os.environ["COMPAT_GUIDE"])
