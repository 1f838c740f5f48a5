// One pinned file of one agent, under review: what it has, what is offered, and what to make of it.

import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { useState } from "react";
import { agentQuery } from "../../api/agents";
import type { Pin } from "../../api/pins";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Loading, Refused } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { Comparison } from "./comparison";
import { OverrideWarning } from "./override-warning";
import { Offer } from "./update-details";
import { useReview } from "./use-review";

interface ReviewDialogProps {
  agentId: string;
  path: string;
  onClose: () => void;
}

export function ReviewDialog({ agentId, path, onClose }: ReviewDialogProps) {
  const review = useReview(agentId, path, onClose);
  const agent = useQuery(agentQuery(agentId));
  const { pins, shown } = review;
  const whose = agent.data ? ` for ${plain(agent.data.name, 60)}` : "";
  return (
    <Dialog
      wide
      title={<span className="bidi">{`Review ${plain(path, 120)}${whose}`}</span>}
      onClose={onClose}
      foot={shown && <Decision review={review} pin={shown} onClose={onClose} />}
    >
      {shown && <Reviewed review={review} pin={shown} agentId={agentId} />}
      {!shown && pins.isError && <Refused error={pins.error} again={() => void pins.refetch()} />}
      {!shown && pins.isPending && <Loading />}
      {!shown && pins.data && <p>There is no pinned file of this name.</p>}
    </Dialog>
  );
}

type Review = ReturnType<typeof useReview>;

function Reviewed({ review, pin, agentId }: { review: Review; pin: Pin; agentId: string }) {
  return (
    <>
      {review.superseded && (
        <div className="notice update" role="alert">
          <RefreshCw size={16} aria-hidden />
          <div className="grow">
            <strong>Upstream has moved on.</strong> What you read is no longer the latest, so
            nothing was accepted. This is the newer text: please review it again.
          </div>
        </div>
      )}
      {review.newer && (
        <div className="notice update" role="status">
          <RefreshCw size={16} aria-hidden />
          <div className="grow">Something newer was offered while you were reading.</div>
          <Button small onClick={review.showNewer}>
            Show the newer one
          </Button>
        </div>
      )}
      {pin.error && (
        <div className="notice bad" role="alert">
          {pin.error}
        </div>
      )}
      {pin.updateAvailable ? <Offer pin={pin} /> : <p className="soft">{NOTHING}</p>}
      {pin.overridden && pin.updateAvailable && (
        <OverrideWarning agentId={agentId} path={pin.path} />
      )}
      <Comparison pinned={pin.pinnedContent} latest={pin.latestContent} path={pin.path} />
    </>
  );
}

const NOTHING = "Nothing waits for a review: the agent is at what is offered.";
const MEMBERS = "Only an owner or an admin accepts: you may read.";

function Decision({ review, pin, onClose }: { review: Review; pin: Pin; onClose: () => void }) {
  const session = useSession();
  const [goingBack, setGoingBack] = useState(false);
  const { accept, rollBack, mayGoBack } = review;
  if (!isAdmin(session)) {
    return (
      <>
        <span className="faint grow">{MEMBERS}</span>
        <Button onClick={onClose}>Close</Button>
      </>
    );
  }
  if (goingBack) {
    return (
      <>
        <span className="grow">Go back to what was reviewed before? An override is dropped.</span>
        <Button onClick={() => setGoingBack(false)}>Keep it</Button>
        <Button kind="danger" busy={rollBack.isPending} onClick={() => rollBack.mutate()}>
          Yes, roll back
        </Button>
      </>
    );
  }
  const reviewed = pin.updateAvailable ? pin.latestSha256 : null;
  return (
    <>
      {mayGoBack && (
        <Button kind="plain" onClick={() => setGoingBack(true)}>
          Roll back
        </Button>
      )}
      <span className="grow faint mono cut only-large">
        {reviewed ? `sha256:${reviewed.slice(0, 12)}…` : null}
      </span>
      <Button onClick={onClose}>{reviewed ? "Not now" : "Close"}</Button>
      {reviewed && (
        <Button kind="primary" busy={accept.isPending} onClick={() => accept.mutate(reviewed)}>
          {pin.overridden ? "Accept and drop the override" : "Accept"}
        </Button>
      )}
    </>
  );
}
