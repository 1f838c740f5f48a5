import { useNow } from "../../components/use-now";

const UNITS: [size: number, name: string][] = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** Time until `until`, such as "2 hours"; empty if it has passed. */
export function formatRemaining(until: string, now: number): string {
  const seconds = Math.floor((new Date(until).getTime() - now) / 1000);
  if (seconds <= 0) return "";
  const [size, name] = UNITS.find(([unitSeconds]) => seconds >= unitSeconds) ?? [1, "second"];
  const count = Math.floor(seconds / size);
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

export function TimeRemaining({ until }: { until: string }) {
  const remaining = formatRemaining(until, useNow(10));
  return (
    <time dateTime={until} title={new Date(until).toLocaleString("en")}>
      {remaining ? `expires in ${remaining}` : "expired"}
    </time>
  );
}
