"""Collects measurements of all rounds and prints ratios as a table."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path as File

from rich.console import Console
from rich.table import Table

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a ratio or a figure, and its goal."""

    label: str
    value: float
    low: float
    high: float
    unit: str = TIMES
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        if self.at_least is None and self.at_most is None:
            return None
        return not (
            (self.at_least is not None and self.value < self.at_least)
            or (self.at_most is not None and self.value > self.at_most)
        )

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else ""


@dataclass(slots=True)
class Results:
    """All measurements by name, one for each round, and the rows of the table."""

    figures: dict[str, list[float]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def record(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)

    def ratio(
        self,
        label: str,
        above: str,
        below: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        """Add the median of the rounds' ratios.

        A slow moment affects both parts of a round alike.
        """
        pairs = zip(self.figures[above], self.figures[below], strict=True)
        self._add_row(label, [a / b for a, b in pairs], TIMES, at_least, at_most)

    def figure(
        self, label: str, name: str, unit: str, scale: float = 1.0, at_most: float | None = None
    ) -> None:
        self._add_row(label, [value * scale for value in self.figures[name]], unit, None, at_most)

    def goal_row(self, label: str, value: float, at_least: float) -> None:
        """Add a figure that is measured once, with its goal."""
        self._add_row(label, [value], "", at_least, None)

    def figure_row(self, label: str, value: float) -> None:
        """Add a figure that is measured once, for comparison with the rows beside it."""
        self._add_row(label, [value], "", None, None)

    def _add_row(
        self,
        label: str,
        values: list[float],
        unit: str,
        at_least: float | None,
        at_most: float | None,
    ) -> None:
        middle = statistics.median(values)
        self.rows.append(Row(label, middle, min(values), max(values), unit, at_least, at_most))

    def show(self, console: Console) -> None:
        table = Table(title="Carrel, measured in one run (median of rounds, lowest to highest)")
        for name in ("what", "median", "range", "goal", ""):
            table.add_column(name, justify="left" if name in ("what", "") else "right")
        for row in self.rows:
            status = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
            spread = f"{row.low:.3g} … {row.high:.3g}"
            table.add_row(row.label, f"{row.value:.3g} {row.unit}", spread, row.goal, status)
        console.print(table)

    def write(self, file: File) -> None:
        rows = [
            {"what": r.label, "value": r.value, "low": r.low, "high": r.high, "unit": r.unit}
            | {"atLeast": r.at_least, "atMost": r.at_most, "met": r.met}
            for r in self.rows
        ]
        file.write_text(json.dumps({"rows": rows, "figures": self.figures}, indent=1) + "\n")
