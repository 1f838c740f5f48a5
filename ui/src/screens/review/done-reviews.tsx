// Past reviews of pinned files, with their roll back.

import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { History } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { useAuthorNames } from "../../api/authors";
import { fileUrl } from "../../api/files";
import { REVIEW_QUERY_KEYS } from "../../api/pins";
import { type Review, reviewsQuery, rollBackReview } from "../../api/reviews";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

export function DoneReviews() {
  const query = useInfiniteQuery(reviewsQuery());
  const [reversing, setReversing] = useState<Review | null>(null);
  return (
    <QueryResult query={query}>
      {({ pages }) => {
        const reviews = pages.flatMap(({ items }) => items);
        if (reviews.length === 0)
          return (
            <EmptyState icon={History} title="No reviews yet">
              <p>Updates that were accepted, declined, merged or rolled back appear here.</p>
            </EmptyState>
          );
        return (
          <section className="card">
            <header>
              <h2 className="grow">Reviews</h2>
              <span className="badge">{(pages[0]?.total ?? 0).toLocaleString("en")}</span>
            </header>
            <ul className="inbox-list review-list">
              {reviews.map((review) => (
                <ReviewRow key={review.id} review={review} onRollBack={setReversing} />
              ))}
            </ul>
            {query.hasNextPage && (
              <p className="card-body">
                <Button
                  small
                  busy={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  Show more
                </Button>
              </p>
            )}
            {reversing && <RollBackDialog review={reversing} onClose={() => setReversing(null)} />}
          </section>
        );
      }}
    </QueryResult>
  );
}

const DECISIONS = {
  accepted: "Accepted",
  declined: "Declined",
  merged: "Merged",
  "rolled-back": "Rolled back",
} as const;

interface ReviewRowProps {
  review: Review;
  onRollBack: (review: Review) => void;
}

function ReviewRow({ review, onRollBack }: ReviewRowProps) {
  const authorOf = useAuthorNames();
  const admin = isAdmin(useSession());
  const canRollBack = admin && review.decision !== "rolled-back" && !review.rolledBackBy;
  return (
    <li className="row wrap">
      <span className={review.decision === "accepted" ? "badge good" : "badge"}>
        {DECISIONS[review.decision]}
      </span>
      <span className="mono truncate">{escapeText(review.path, 80)}</span>
      <span className="bidi">{subjectOf(review)}</span>
      <span className="grow soft bidi review-reason">{escapeText(review.reason, 200)}</span>
      {review.rolledBackBy && <span className="badge">Rolled back</span>}
      <span className="faint bidi">{authorOf(review.author)}</span>
      <Time at={review.at} />
      {canRollBack && (
        <Button small onClick={() => onRollBack(review)}>
          Roll back
        </Button>
      )}
    </li>
  );
}

const agentCount = (n: number) => (n === 1 ? "1 agent" : `${n.toLocaleString("en")} agents`);

function subjectOf(review: Review) {
  if (review.agentId) {
    const name = escapeText(review.agentName ?? review.agentId, 60);
    return <Link to={fileUrl({ kind: "agent", id: review.agentId })}>{name}</Link>;
  }
  const layer = review.templateId
    ? escapeText(review.templateName ?? review.templateId, 60)
    : "Defaults";
  return `${layer}: ${agentCount(review.changed)}${review.part ? ` (${review.part})` : ""}`;
}

function RollBackDialog({ review, onClose }: { review: Review; onClose: () => void }) {
  const queries = useQueryClient();
  const rollBack = useMutation({
    mutationFn: () => rollBackReview(review.id),
    onSuccess: ({ rolledBack, failed }) => {
      for (const key of REVIEW_QUERY_KEYS) void queries.invalidateQueries({ queryKey: [key] });
      const skipped = failed > 0 ? `; ${agentCount(failed)} changed since` : "";
      toast(`Rolled back for ${agentCount(rolledBack)}${skipped}`);
      onClose();
    },
  });
  return (
    <Dialog
      title="Roll back review"
      onClose={onClose}
      footer={
        <>
          <span className="grow" />
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" busy={rollBack.isPending} onClick={() => rollBack.mutate()}>
            Roll back
          </Button>
        </>
      }
    >
      <p>
        {agentCount(review.changed)} get back what they had of{" "}
        <span className="mono">{escapeText(review.path, 80)}</span> before this review, overrides
        included. Agents whose file changed since keep it.
      </p>
    </Dialog>
  );
}
