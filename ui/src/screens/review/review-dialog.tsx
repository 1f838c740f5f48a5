// Review of one pinned file of one agent.

import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { useState } from "react";
import { agentQuery } from "../../api/agents";
import type { Pin } from "../../api/pins";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { ErrorNotice, Loading } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { Comparison } from "./comparison";
import { DeclineForm } from "./decline-form";
import { MergeOverrideDialog } from "./merge-override-dialog";
import { OverrideWarning } from "./override-warning";
import { UpdateDetails } from "./update-details";
import { useReview } from "./use-review";

interface ReviewDialogProps {
  agentId: string;
  path: string;
  onClose: () => void;
}

export function ReviewDialog({ agentId, path, onClose }: ReviewDialogProps) {
  const review = useReview(agentId, path, onClose);
  const agent = useQuery(agentQuery(agentId));
  const { pins, pin } = review;
  const [isMerging, setMerging] = useState(false);
  const suffix = agent.data ? ` for ${escapeText(agent.data.name, 60)}` : "";
  if (isMerging)
    return (
      <MergeOverrideDialog
        agentId={agentId}
        path={path}
        onClose={() => setMerging(false)}
        onSaved={onClose}
      />
    );
  return (
    <Dialog
      wide
      title={<span className="bidi">{`Review ${escapeText(path, 120)}${suffix}`}</span>}
      onClose={onClose}
      footer={
        pin && (
          <ReviewActions
            review={review}
            pin={pin}
            onClose={onClose}
            onMerge={() => setMerging(true)}
          />
        )
      }
    >
      {pin && <ReviewContent review={review} pin={pin} />}
      {!pin && pins.isError && (
        <ErrorNotice error={pins.error} onRetry={() => void pins.refetch()} />
      )}
      {!pin && pins.isPending && <Loading />}
      {!pin && pins.data && <p>Pinned file not found.</p>}
    </Dialog>
  );
}

type Review = ReturnType<typeof useReview>;

function ReviewContent({ review, pin }: { review: Review; pin: Pin }) {
  return (
    <>
      {review.isSuperseded && (
        <div className="notice update" role="alert">
          <RefreshCw size={16} aria-hidden />
          <div className="grow">
            <strong>A newer version is available.</strong> Nothing was accepted. Review the new diff
            below.
          </div>
        </div>
      )}
      {review.newer && (
        <div className="notice update" role="status">
          <RefreshCw size={16} aria-hidden />
          <div className="grow">A newer version is available.</div>
          <Button small onClick={review.showNewer}>
            Show newer version
          </Button>
        </div>
      )}
      {pin.error && (
        <div className="notice bad" role="alert">
          {pin.error}
        </div>
      )}
      {isOffered(pin) ? <UpdateDetails pin={pin} /> : <p className="soft">{UP_TO_DATE}</p>}
      {pin.overridden && pin.updateAvailable && <OverrideWarning pin={pin} />}
      {pin.declined && (
        <p className="soft">
          This update was declined. It is no longer offered; accepting it takes the decline back.
        </p>
      )}
      <Comparison
        served={pin.servedContent}
        pinned={pin.pinnedContent}
        latest={pin.latestContent}
        path={pin.path}
        isOverridden={pin.overridden}
      />
    </>
  );
}

const isOffered = (pin: Pin) => pin.updateAvailable || pin.declined;
const UP_TO_DATE = "Up to date: nothing to review.";
const READ_ONLY = "Only owners and admins can accept updates.";

function acceptLabel({ latestSha256, overridden }: Pin): string {
  if (!latestSha256) return "Accept removal";
  return overridden ? "Accept and remove override" : "Accept";
}

function ReviewActions({
  review,
  pin,
  onClose,
  onMerge,
}: {
  review: Review;
  pin: Pin;
  onClose: () => void;
  onMerge: () => void;
}) {
  const session = useSession();
  const [isRollingBack, setRollingBack] = useState(false);
  const [isDeclining, setDeclining] = useState(false);
  const { accept, rollBack, canRollBack } = review;
  if (!isAdmin(session)) {
    return (
      <>
        <span className="faint grow">{READ_ONLY}</span>
        <Button onClick={onClose}>Close</Button>
      </>
    );
  }
  if (isRollingBack) {
    return (
      <>
        <span className="grow">
          Roll back to the previously reviewed version? An override is removed.
        </span>
        <Button onClick={() => setRollingBack(false)}>Cancel</Button>
        <Button kind="danger" busy={rollBack.isPending} onClick={() => rollBack.mutate()}>
          Confirm rollback
        </Button>
      </>
    );
  }
  if (isDeclining) {
    return (
      <DeclineForm
        busy={review.decline.isPending}
        onDecline={(reason) => review.decline.mutate(reason)}
        onCancel={() => setDeclining(false)}
      />
    );
  }
  const offered = isOffered(pin);
  return (
    <>
      {canRollBack && (
        <Button kind="plain" onClick={() => setRollingBack(true)}>
          Roll back
        </Button>
      )}
      <span className="grow faint mono truncate only-large">
        {offered && pin.latestSha256 ? `sha256:${pin.latestSha256.slice(0, 12)}…` : null}
      </span>
      {pin.updateAvailable && <Button onClick={() => setDeclining(true)}>Decline</Button>}
      <Button onClick={onClose}>{offered ? "Not now" : "Close"}</Button>
      {offered && pin.overridden && pin.latestSha256 && <Button onClick={onMerge}>Merge</Button>}
      {offered && (
        <Button
          kind="primary"
          busy={accept.isPending}
          onClick={() => accept.mutate(pin.latestSha256 ?? null)}
        >
          {acceptLabel(pin)}
        </Button>
      )}
    </>
  );
}
