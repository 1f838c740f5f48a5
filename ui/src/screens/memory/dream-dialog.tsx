// One dream, whole: what it changes, what it promotes, and of everything else why not.

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { PromotionCriteria } from "../../api/agent-config";
import { type Dream, dreamQuery } from "../../api/dreams";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { UnifiedDiff } from "../../components/unified-diff";
import { PromotedList, RejectedList } from "./dream-results";
import { DreamReview } from "./dream-review";
import { DreamStatus } from "./dream-table";

interface DreamDialogProps {
  dream: Dream;
  criteria: PromotionCriteria;
  title: string;
  onClose: () => void;
  footer?: ReactNode;
}

export function DreamDialog({ dream, criteria, title, onClose, footer }: DreamDialogProps) {
  return (
    <Dialog
      wide
      title={title}
      onClose={onClose}
      footer={footer ?? <Button onClick={onClose}>Close</Button>}
    >
      <DreamSummary dream={dream} />
      {dream.diff && (
        <>
          <h3>
            MEMORY.md {dream.dryRun || dream.status === "proposed" ? "would change" : "changed"}
          </h3>
          <UnifiedDiff text={dream.diff} />
        </>
      )}
      <PromotedList promoted={dream.promoted} criteria={criteria} />
      <RejectedList rejected={dream.rejected} reasons={dream.reasons} criteria={criteria} />
      {dream.evicted.length > 0 && (
        <p className="soft">
          {dream.evicted.length} older dreamed {dream.evicted.length === 1 ? "line" : "lines"} made
          room in MEMORY.md.
        </p>
      )}
    </Dialog>
  );
}

function DreamSummary({ dream }: { dream: Dream }) {
  if (dream.dryRun)
    return (
      <p className="notice">
        A dry run: nothing was changed. {dream.candidates} candidates were looked at, and{" "}
        {dream.skipped} had been promoted before.
      </p>
    );
  return (
    <p className="row wrap soft">
      <DreamStatus status={dream.status} />
      <span>
        <Time at={dream.startedAt} />, by <code className="bidi">{escapeText(dream.by, 60)}</code>;{" "}
        {dream.candidates} candidates, {dream.skipped} promoted before
      </span>
      {dream.answeredAt && (
        <span>
          answered <Time at={dream.answeredAt} />
          {dream.answer && <span className="bidi">: “{escapeText(dream.answer, 500)}”</span>}
        </span>
      )}
    </p>
  );
}

interface StoredDreamProps {
  agentId: string;
  dream: string;
  criteria: PromotionCriteria;
  onClose: () => void;
}

/** One that is kept, by its id; while it waits for a review, with the answer to give. */
export function StoredDreamDialog({ agentId, dream, criteria, onClose }: StoredDreamProps) {
  const query = useQuery(dreamQuery(agentId, dream));
  if (!query.data)
    return (
      <Dialog title="A dream" onClose={onClose}>
        <QueryResult query={query}>{() => null}</QueryResult>
      </Dialog>
    );
  const needsReview = query.data.status === "proposed";
  return (
    <DreamDialog
      dream={query.data}
      criteria={criteria}
      title={needsReview ? "Review a dream" : "A dream"}
      onClose={onClose}
      footer={
        needsReview ? <DreamReview agentId={agentId} dream={dream} onClose={onClose} /> : undefined
      }
    />
  );
}
