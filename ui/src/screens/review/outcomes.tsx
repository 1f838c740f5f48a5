import { AlertTriangle, Check } from "lucide-react";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import type { ReviewOutcome } from "./use-bulk-review";

const MAX_LISTED = 500;

interface OutcomesProps {
  outcomes: ReviewOutcome[];
  busy: boolean;
  /** Retries the failed ones; undefined if none failed. */
  retry: (() => void) | undefined;
  /** Rolls back what was reviewed for all; undefined if nothing was. */
  rollBack: (() => void) | undefined;
}

/** Result per agent, failures first. */
export function Outcomes({ outcomes, busy, retry, rollBack }: OutcomesProps) {
  if (outcomes.length === 0) return null;
  const failed = outcomes.filter(({ error }) => error !== null);
  const done = outcomes.filter(({ error }) => error === null);
  const count = (wanted: string) => done.filter(({ action }) => action === wanted).length;
  const counts = ["accepted", "declined", "rolled back"]
    .map((action) => ({ action, number: count(action) }))
    .filter(({ number }) => number > 0);
  const none = { action: outcomes[0]?.action ?? "accepted", number: 0 };
  const summary = counts.length > 0 ? counts : [none];
  return (
    <section className="card" aria-label="Results">
      <header>
        <h2 className="grow" role="status">
          {summary
            .map(({ action, number }) => `${number.toLocaleString("en")} ${action}`)
            .join(", ")}
          {failed.length > 0 && `, ${failed.length.toLocaleString("en")} failed`}
        </h2>
        {rollBack && (
          <Button small kind="danger" busy={busy} onClick={rollBack}>
            Roll back for all
          </Button>
        )}
        {retry && (
          <Button small busy={busy} onClick={retry}>
            Retry failed
          </Button>
        )}
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable */}
      <div className="follower-scroll" role="region" aria-label="Result of each agent" tabIndex={0}>
        <ul className="follower-list">
          {[...failed, ...done].slice(0, MAX_LISTED).map(({ agent, error, action }) => (
            <li key={agent.id} className="row">
              {error ? (
                <AlertTriangle size={15} className="bad-text" aria-label="failed" />
              ) : (
                <Check size={15} className="good-text" aria-label="done" />
              )}
              <span className="truncate bidi">{escapeText(agent.name, 80)}</span>
              <span className="faint grow">{error ?? action}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
