import { AlertTriangle, Check } from "lucide-react";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import type { AcceptOutcome } from "./use-bulk-accept";

const MAX_LISTED = 500;

interface OutcomesProps {
  outcomes: AcceptOutcome[];
  busy: boolean;
  /** Retries the failed ones; undefined if none failed. */
  retry: (() => void) | undefined;
}

/** Result per agent, failures first. */
export function Outcomes({ outcomes, busy, retry }: OutcomesProps) {
  if (outcomes.length === 0) return null;
  const failed = outcomes.filter(({ error }) => error !== null);
  const accepted = outcomes.filter(({ error }) => error === null);
  return (
    <section className="card" aria-label="Results">
      <header>
        <h2 className="grow" role="status">
          {accepted.length.toLocaleString("en")} accepted
          {failed.length > 0 && `, ${failed.length.toLocaleString("en")} failed`}
        </h2>
        {retry && (
          <Button small busy={busy} onClick={retry}>
            Retry failed
          </Button>
        )}
      </header>
      <ul className="follower-list">
        {[...failed, ...accepted].slice(0, MAX_LISTED).map(({ agent, error }) => (
          <li key={agent.id} className="row">
            {error ? (
              <AlertTriangle size={15} className="bad-text" aria-label="failed" />
            ) : (
              <Check size={15} className="good-text" aria-label="accepted" />
            )}
            <span className="truncate bidi">{escapeText(agent.name, 80)}</span>
            <span className="faint grow">{error ?? "accepted"}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
