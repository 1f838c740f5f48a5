"""What tests of tools may ask for beside what all may."""

from __future__ import annotations

from tests.actions.conftest import anywhere

__all__ = ["anywhere"]
