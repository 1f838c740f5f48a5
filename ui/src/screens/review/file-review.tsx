import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { type FollowerPart, pinsQuery } from "../../api/pins";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { QueryResult } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { Comparison } from "./comparison";
import { FollowerSelection } from "./follower-selection";
import type { FollowerGroup, PendingFile, PendingFollower } from "./followers";
import { Outcomes } from "./outcomes";
import { PinnedVersions } from "./pinned-versions";
import { UpdateDetails } from "./update-details";
import { useBulkReview } from "./use-bulk-review";
import { VersionBar } from "./version-bar";

interface FileReviewProps {
  templateId: string;
  path: string;
  file: PendingFile | undefined;
  emptyState: ReactNode;
  onAcceptingChange: (isAccepting: boolean) => void;
}

/** Review of one file: diff, affected agents and results. */
export function FileReview({
  templateId,
  path,
  file,
  emptyState,
  onAcceptingChange,
}: FileReviewProps) {
  const bulk = useBulkReview(templateId, path);
  const isAccepting = bulk.progress !== null;
  useEffect(() => onAcceptingChange(isAccepting), [isAccepting, onAcceptingChange]);
  const { reviewId } = bulk;
  const failed = bulk.outcomes
    .filter(({ error, action }) => error && action === "accepted")
    .map(({ agent }) => agent);
  return (
    <>
      {file ? (
        <PendingFileReview file={file} bulk={bulk} />
      ) : (
        bulk.outcomes.length === 0 && emptyState
      )}
      <VersionBar templateId={templateId} path={path} />
      {bulk.progress && <Progress {...bulk.progress} />}
      <Outcomes
        outcomes={bulk.outcomes}
        busy={isAccepting}
        retry={
          file && failed.length > 0
            ? () =>
                void bulk.accept(failed, digestOf(file), { agentIds: failed.map(({ id }) => id) })
            : undefined
        }
        rollBack={reviewId ? () => void bulk.rollBack(reviewId) : undefined}
      />
    </>
  );
}

const digestOf = ({ latest }: PendingFile) => latest?.replace(/^sha256:/, "") ?? null;

function PendingFileReview({
  file,
  bulk,
}: {
  file: PendingFile;
  bulk: ReturnType<typeof useBulkReview>;
}) {
  const admin = isAdmin(useSession());
  const [reviewedSha, setReviewedSha] = useState(file.latest);
  const [groupIndex, setGroupIndex] = useState(0);
  const allAgents = useMemo(() => file.groups.flatMap(({ agents }) => agents), [file]);
  const group = file.groups[groupIndex] ?? file.groups[0];
  const isSuperseded = reviewedSha !== file.latest;
  const accept = (selected: PendingFollower[], part: FollowerPart | null) => {
    const isAll = selected.length === allAgents.length;
    const listed = isAll ? undefined : { agentIds: selected.map(({ id }) => id) };
    void bulk.accept(selected, digestOf(file), part ?? listed);
  };
  return (
    <>
      {isSuperseded && <SupersededNotice onConfirm={() => setReviewedSha(file.latest)} />}
      <PinnedVersions groups={file.groups} selected={groupIndex} onSelect={setGroupIndex} />
      {group && <Difference group={group} path={file.path} />}
      <FollowerSelection
        groups={file.groups}
        disabledReason={
          !admin ? READ_ONLY : isSuperseded ? "Review the newer version first." : null
        }
        busy={bulk.progress !== null}
        isRemoval={file.latest === null}
        onAccept={accept}
        onDecline={(reason) => void bulk.decline(allAgents, digestOf(file), reason)}
      />
    </>
  );
}

const READ_ONLY = "Only owners and admins can review updates.";

/** Diff for a group; its agents all have the same pinned text. */
function Difference({ group, path }: { group: FollowerGroup; path: string }) {
  const pins = useQuery(pinsQuery(group.agents[0]?.id ?? ""));
  return (
    <QueryResult query={pins}>
      {(items) => {
        const pin = items.find((item) => item.path === path);
        if (!pin) return <p className="faint">No longer pinned.</p>;
        return (
          <div className="stack">
            <UpdateDetails pin={pin} />
            <Comparison
              served={pin.servedContent}
              pinned={pin.pinnedContent}
              latest={pin.latestContent}
              path={path}
              isOverridden={pin.overridden}
            />
          </div>
        );
      }}
    </QueryResult>
  );
}

function SupersededNotice({ onConfirm }: { onConfirm: () => void }) {
  return (
    <div className="notice update" role="alert">
      <RefreshCw size={16} aria-hidden />
      <div className="grow">
        <strong>A newer version is available.</strong> The diff below shows it.
      </div>
      <Button small onClick={onConfirm}>
        Review newer version
      </Button>
    </div>
  );
}

function Progress({ done, total }: { done: number; total: number }) {
  return (
    <label className="stack tight">
      <span className="soft">
        Changing {total.toLocaleString("en")} {total === 1 ? "agent" : "agents"}
        {done > 0 && `: ${done.toLocaleString("en")} done`}
      </span>
      <progress className="progress" max={total} {...(done > 0 && { value: done })} />
    </label>
  );
}
