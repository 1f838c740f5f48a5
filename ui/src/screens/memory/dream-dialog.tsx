// Details of a dream: diff, promoted memories, and rejected ones with reasons.

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
            {dream.dryRun || dream.status === "proposed" ? "Proposed changes" : "Changes"} to
            MEMORY.md
          </h3>
          <UnifiedDiff text={dream.diff} />
        </>
      )}
      <PromotedList promoted={dream.promoted} criteria={criteria} />
      <RejectedList rejected={dream.rejected} reasons={dream.reasons} criteria={criteria} />
      {dream.evicted.length > 0 && (
        <p className="soft">
          {dream.evicted.length} older promoted {dream.evicted.length === 1 ? "line" : "lines"}{" "}
          removed from MEMORY.md.
        </p>
      )}
    </Dialog>
  );
}

function DreamSummary({ dream }: { dream: Dream }) {
  if (dream.dryRun)
    return (
      <p className="notice">
        Dry run: nothing was changed. {dream.candidates} candidates, {dream.skipped} already
        promoted.
      </p>
    );
  return (
    <p className="row wrap soft">
      <DreamStatus status={dream.status} />
      <span>
        <Time at={dream.startedAt} />, by <code className="bidi">{escapeText(dream.by, 60)}</code>;{" "}
        {dream.candidates} candidates, {dream.skipped} already promoted
      </span>
      {dream.answeredAt && (
        <span>
          reviewed <Time at={dream.answeredAt} />
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

/** A stored dream by id, with review actions while it is proposed. */
export function StoredDreamDialog({ agentId, dream, criteria, onClose }: StoredDreamProps) {
  const query = useQuery(dreamQuery(agentId, dream));
  if (!query.data)
    return (
      <Dialog title="Dream" onClose={onClose}>
        <QueryResult query={query}>{() => null}</QueryResult>
      </Dialog>
    );
  const needsReview = query.data.status === "proposed";
  return (
    <DreamDialog
      dream={query.data}
      criteria={criteria}
      title={needsReview ? "Review dream" : "Dream"}
      onClose={onClose}
      footer={
        needsReview ? <DreamReview agentId={agentId} dream={dream} onClose={onClose} /> : undefined
      }
    />
  );
}
