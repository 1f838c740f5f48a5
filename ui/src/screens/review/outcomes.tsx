import { AlertTriangle, Check } from "lucide-react";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import type { AcceptOutcome } from "./use-bulk-accept";

const MAX_LISTED = 500;

interface OutcomesProps {
  outcomes: AcceptOutcome[];
  busy: boolean;
  /** Tries those that failed again; absent where there is nothing to try. */
  retry: (() => void) | undefined;
}

/** What became of each agent, those that failed first. */
export function Outcomes({ outcomes, busy, retry }: OutcomesProps) {
  if (outcomes.length === 0) return null;
  const failed = outcomes.filter(({ error }) => error !== null);
  const accepted = outcomes.filter(({ error }) => error === null);
  return (
    <section className="card" aria-label="What became of them">
      <header>
        <h2 className="grow" role="status">
          {accepted.length.toLocaleString("en")} accepted
          {failed.length > 0 && `, ${failed.length.toLocaleString("en")} failed`}
        </h2>
        {retry && (
          <Button small busy={busy} onClick={retry}>
            Try the failed ones again
          </Button>
        )}
      </header>
      <ul className="follower-list">
        {[...failed, ...accepted].slice(0, MAX_LISTED).map(({ agent, error }) => (
          <li key={agent.id} className="row">
            {error ? (
              <AlertTriangle size={15} className="bad-ink" aria-label="failed" />
            ) : (
              <Check size={15} className="good-ink" aria-label="accepted" />
            )}
            <span className="cut bidi">{escapeText(agent.name, 80)}</span>
            <span className="faint grow">{error ?? "accepted"}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
