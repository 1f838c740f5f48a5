import { type ReactNode, useId } from "react";

interface OverviewCardProps {
  title: string;
  /** The most important number, beside the title. */
  summary?: ReactNode;
  actions?: ReactNode;
  /** Takes two thirds of the width. */
  wide?: boolean;
  children: ReactNode;
}

export function OverviewCard({ title, summary, actions, wide, children }: OverviewCardProps) {
  const id = useId();
  return (
    <section
      className={wide ? "card overview-card wide" : "card overview-card"}
      aria-labelledby={id}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <span className="soft grow truncate">{summary}</span>
        {actions}
      </header>
      <div className="card-body">{children}</div>
    </section>
  );
}

const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat("en", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});

/** A day in UTC, as the server counts days. */
export const toDay = (at: string) => DAY.format(new Date(at));
export const toHour = (at: string) => HOUR.format(new Date(at));
