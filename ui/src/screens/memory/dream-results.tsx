// Memories that a dream promoted or rejected.

import type { PromotionCriteria } from "../../api/agent-config";
import type { Promoted, Rejected } from "../../api/dreams";
import { escapeText } from "../../components/escape-text";
import { REJECTION_REASONS } from "./rejection-reasons";
import { ScoreBar } from "./score-bar";

const DELETED = "(deleted memory)";

interface PromotedListProps {
  promoted: readonly Promoted[];
  criteria: PromotionCriteria;
}

export function PromotedList({ promoted, criteria }: PromotedListProps) {
  return (
    <>
      <h3>Promoted ({promoted.length})</h3>
      {promoted.length === 0 && <p className="soft">No memory met the promotion criteria.</p>}
      {promoted.length > 0 && (
        <ul className="card memory-list" aria-label="Promoted">
          {promoted.map(({ memoryId, content, score, hits, days }) => (
            <li key={memoryId}>
              <ScoreBar score={score} threshold={criteria.minScore} />
              <div className="grow">
                <div className="bidi">{content === null ? DELETED : escapeText(content, 400)}</div>
                <div className="faint">
                  {hits} recalls on {days} {days === 1 ? "day" : "days"}
                </div>
              </div>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface RejectedListProps {
  rejected: readonly Rejected[];
  reasons: Record<string, number>;
  criteria: PromotionCriteria;
}

export function RejectedList({ rejected, reasons, criteria }: RejectedListProps) {
  const total = Object.values(reasons).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <h3>Not promoted ({total})</h3>
      {total === 0 && <p className="soft">No other candidates.</p>}
      {rejected.length > 0 && (
        <ul className="card memory-list" aria-label="Not promoted">
          {rejected.map(({ memoryId, content, score, reason, message }) => (
            <li key={memoryId}>
              <ScoreBar score={score} threshold={criteria.minScore} isRejected />
              <div className="grow">
                <div className="bidi">{content === null ? DELETED : escapeText(content, 400)}</div>
                <div className="row wrap faint">
                  <span className="badge" title={REJECTION_REASONS[reason] ?? reason}>
                    {reason}
                  </span>
                  <span>{message}</span>
                </div>
              </div>
            </li>
          ))}
        </ul>
      )}
      {total > rejected.length && (
        <p className="faint">Only the {rejected.length} with the highest score are listed.</p>
      )}
    </>
  );
}
