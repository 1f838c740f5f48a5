import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Version } from "../../api/files";
import { REVIEW_QUERY_KEYS, rollBackPin } from "../../api/pins";
import { newestReviewQuery, rollBackReview } from "../../api/reviews";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { toast } from "../../components/toast";

interface RollBackButtonProps {
  agentId: string;
  path: string;
  /** The newest version, which a review wrote. */
  version: Version;
}

/** Whether a review wrote the version. */
export const isOfReview = ({ reason }: Version) => /^(accept|merge|decline) /.test(reason);

/** Rolls back the review that wrote an agent's newest version of a file. */
export function RollBackButton({ agentId, path, version }: RollBackButtonProps) {
  const queries = useQueryClient();
  const [isConfirming, setConfirming] = useState(false);
  const { data: review } = useQuery(newestReviewQuery(agentId, path));
  const own = review && review.at === version.updatedAt && !review.rolledBackBy ? review : null;
  const rollBack = useMutation({
    mutationFn: async () => {
      await (own ? rollBackReview(own.id) : rollBackPin(agentId, path));
    },
    onSuccess: () => {
      toast(`Rolled back ${path}`);
      for (const key of REVIEW_QUERY_KEYS) void queries.invalidateQueries({ queryKey: [key] });
    },
    onSettled: () => setConfirming(false),
  });
  // A decline for many agents is rolled back for all of them, in the inbox.
  if (review === undefined || (!own && !version.reason.startsWith("accept "))) return null;
  return (
    <>
      <Button small kind="plain" onClick={() => setConfirming(true)}>
        Roll back
      </Button>
      {isConfirming && (
        <Confirm
          title="Roll back review?"
          action="Roll back"
          danger
          busy={rollBack.isPending}
          onConfirm={() => rollBack.mutate()}
          onClose={() => setConfirming(false)}
        >
          <p>
            {own
              ? "The agent gets back what it had before this review, its override included: "
              : "The agent gets back the reviewed version before this one: "}
            <span className="mono bidi">{escapeText(path, 80)}</span>.
          </p>
        </Confirm>
      )}
    </>
  );
}
