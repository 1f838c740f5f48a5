const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const EXACT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/** Relative time such as "3 hours ago". */
export function formatAgo(at: string, now = Date.now()): string {
  const seconds = Math.round((new Date(at).getTime() - now) / 1000);
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  if (!unit) return Math.abs(seconds) < 10 ? "just now" : RELATIVE.format(seconds, "second");
  return RELATIVE.format(Math.round(seconds / unit[1]), unit[0]);
}

export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span className="faint">—</span>;
  return (
    <time dateTime={at} title={EXACT.format(new Date(at))}>
      {formatAgo(at)}
    </time>
  );
}
