import { useState } from "react";
import type { Overview } from "../../api/overview";
import { type Point, type Series, StackedBars } from "./chart";
import { OverviewCard, toDay, toHour } from "./overview-card";

type RunCounts = Overview["runsByDay"][number];

const SERIES: (Series & { key: Exclude<keyof RunCounts, "at"> })[] = [
  { key: "completed", name: "Completed", color: "var(--chart-good)" },
  { key: "running", name: "Running", color: "var(--chart-1)" },
  { key: "cancelled", name: "Cancelled", color: "var(--chart-quiet)" },
  { key: "abandoned", name: "Abandoned", color: "var(--chart-warn)" },
  { key: "failed", name: "Failed", color: "var(--chart-bad)" },
];

export function RunsCard({ overview }: { overview: Overview }) {
  const [byHour, setByHour] = useState(false);
  const rows = byHour ? overview.runsByHour : overview.runsByDay;
  const points: Point[] = rows.map((row) => ({
    label: byHour ? toHour(row.at) : toDay(row.at),
    values: SERIES.map(({ key }) => row[key]),
  }));
  const sum = (keys: (typeof SERIES)[number]["key"][]) =>
    rows.reduce((count, row) => count + keys.reduce((part, key) => part + row[key], 0), 0);
  const runs = sum(SERIES.map(({ key }) => key));
  const share = runs ? ((100 * sum(["failed"])) / runs).toFixed(1) : "0";
  return (
    <OverviewCard
      title="Runs"
      wide
      summary={`${runs.toLocaleString("en")} runs, ${share}% failed`}
      actions={
        <div className="segments" role="group" aria-label="Runs by">
          <button type="button" aria-pressed={!byHour} onClick={() => setByHour(false)}>
            Day
          </button>
          <button type="button" aria-pressed={byHour} onClick={() => setByHour(true)}>
            Hour
          </button>
        </div>
      }
    >
      <StackedBars
        caption={byHour ? "Runs by hour and status" : "Runs by day and status"}
        unit={byHour ? "Hour" : "Day"}
        series={SERIES}
        points={points}
      />
    </OverviewCard>
  );
}
