// One dream, whole: what it changes, what it promotes, and of everything else why not.

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Gates } from "../../api/agent-config";
import { type Dream, dreamQuery } from "../../api/dreams";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { UnifiedDiff } from "../../components/unified-diff";
import { PromotedList, RejectedList } from "./dream-results";
import { DreamReview } from "./dream-review";
import { DreamStatus } from "./dream-table";

interface DreamDialogProps {
  dream: Dream;
  gates: Gates;
  title: string;
  onClose: () => void;
  foot?: ReactNode;
}

export function DreamDialog({ dream, gates, title, onClose, foot }: DreamDialogProps) {
  return (
    <Dialog
      wide
      title={title}
      onClose={onClose}
      foot={foot ?? <Button onClick={onClose}>Close</Button>}
    >
      <DreamFacts dream={dream} />
      {dream.diff && (
        <>
          <h3>
            MEMORY.md {dream.dryRun || dream.status === "proposed" ? "would change" : "changed"}
          </h3>
          <UnifiedDiff text={dream.diff} />
        </>
      )}
      <PromotedList promoted={dream.promoted} gates={gates} />
      <RejectedList rejected={dream.rejected} reasons={dream.reasons} gates={gates} />
      {dream.evicted.length > 0 && (
        <p className="soft">
          {dream.evicted.length} older dreamed {dream.evicted.length === 1 ? "line" : "lines"} made
          room in MEMORY.md.
        </p>
      )}
    </Dialog>
  );
}

function DreamFacts({ dream }: { dream: Dream }) {
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
        <Time at={dream.startedAt} />, by <code className="bidi">{plain(dream.by, 60)}</code>;{" "}
        {dream.candidates} candidates, {dream.skipped} promoted before
      </span>
      {dream.answeredAt && (
        <span>
          answered <Time at={dream.answeredAt} />
          {dream.answer && <span className="bidi">: “{plain(dream.answer, 500)}”</span>}
        </span>
      )}
    </p>
  );
}

interface KeptDreamProps {
  agentId: string;
  dream: string;
  gates: Gates;
  onClose: () => void;
}

/** One that is kept, by its id; while it waits for a review, with the answer to give. */
export function KeptDream({ agentId, dream, gates, onClose }: KeptDreamProps) {
  const query = useQuery(dreamQuery(agentId, dream));
  if (!query.data)
    return (
      <Dialog title="A dream" onClose={onClose}>
        <Shown query={query}>{() => null}</Shown>
      </Dialog>
    );
  const waits = query.data.status === "proposed";
  return (
    <DreamDialog
      dream={query.data}
      gates={gates}
      title={waits ? "Review a dream" : "A dream"}
      onClose={onClose}
      foot={waits ? <DreamReview agentId={agentId} dream={dream} onClose={onClose} /> : undefined}
    />
  );
}
