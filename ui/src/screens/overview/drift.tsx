import { Link } from "react-router";
import type { Overview } from "../../api/overview";
import { escapeText } from "../../components/escape-text";
import { formatNumber, type Series, ShareBars } from "./chart";
import { OverviewCard } from "./overview-card";

const BEHIND = [1, 2, 3, 4, 5];
const SERIES: Series[] = [
  { name: "Up to date", color: "var(--chart-good)" },
  { name: "1 version behind", color: "var(--behind-1)" },
  { name: "2 behind", color: "var(--behind-2)" },
  { name: "3 to 5 behind", color: "var(--behind-3)" },
  { name: "Older or from elsewhere", color: "var(--behind-4)" },
  { name: "Never reviewed", color: "var(--chart-quiet)" },
];

export function DriftCard({ overview: { drift } }: { overview: Overview }) {
  const rows = drift.map(({ path, upToDate, behind, older, notReviewed, overridden }) => {
    const [one = 0, two = 0, ...more] = BEHIND.map(
      (n) => behind.find(({ versions }) => versions === n)?.agents ?? 0,
    );
    const later = more.reduce((sum, value) => sum + value, 0);
    const waiting = one + two + later + older + notReviewed;
    const parts = [
      waiting ? `${formatNumber(waiting)} behind` : "All up to date",
      ...(overridden ? [`${formatNumber(overridden)} overridden`] : []),
    ];
    return {
      label: escapeText(path, 60),
      values: [upToDate, one, two, later, older, notReviewed],
      summary: parts.join(", "),
    };
  });
  return (
    <OverviewCard title="Pinned files" summary="Agents by reviewed version">
      {rows.length ? (
        <ShareBars
          caption="Agents by versions behind, for each pinned file"
          unit="File"
          series={SERIES}
          rows={rows}
        />
      ) : (
        <p className="faint">No layer has a pinned file.</p>
      )}
    </OverviewCard>
  );
}

const MAX_OVERRIDES = 8;

export function OverridesCard({ overview: { overrides, agents } }: { overview: Overview }) {
  const rows = overrides.slice(0, MAX_OVERRIDES).map(({ path, agents: count }) => ({
    label: escapeText(path, 60),
    values: [count],
    summary: `${formatNumber(count)} ${count === 1 ? "agent" : "agents"}`,
  }));
  return (
    <OverviewCard title="Overrides" summary="Files that agents override most">
      {rows.length ? (
        <ShareBars
          caption="Agents that override each file"
          unit="File"
          series={[{ name: "Agents", color: "var(--override)" }]}
          rows={rows}
          maximum={agents}
        />
      ) : (
        <p className="faint">
          No agent overrides a file. <Link to="/agents">Show agents</Link>
        </p>
      )}
    </OverviewCard>
  );
}
