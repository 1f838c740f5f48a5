import type { Overview } from "../../api/overview";
import { formatNumber, StackedAreas, StackedBars } from "./chart";
import { OverviewCard, toDay } from "./overview-card";

export function MemoryCard({ overview: { memories } }: { overview: Overview }) {
  const sum = (key: "created" | "promoted") => memories.reduce((count, day) => count + day[key], 0);
  const total = memories.at(-1)?.total ?? 0;
  return (
    <OverviewCard
      title="Memory"
      wide
      summary={`${formatNumber(total)} memories, ${formatNumber(sum("created"))} new, ${formatNumber(sum("promoted"))} promoted`}
    >
      <div className="chart-pair">
        <StackedAreas
          caption="Memories at the end of each day"
          unit="Day"
          series={[{ name: "Memories", color: "var(--chart-1)" }]}
          points={memories.map(({ at, total: count }) => ({ label: toDay(at), values: [count] }))}
        />
        <StackedBars
          caption="Memories created and promoted by day"
          unit="Day"
          series={[
            { name: "Created", color: "var(--chart-1)" },
            { name: "Promoted", color: "var(--chart-good)" },
          ]}
          points={memories.map(({ at, created, promoted }) => ({
            label: toDay(at),
            values: [created, promoted],
          }))}
        />
      </div>
    </OverviewCard>
  );
}
