// Accepts or declines an update for agents in one request, which can be rolled back in one.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { acceptForAll, type FollowerPart, REVIEW_QUERY_KEYS } from "../../api/pins";
import { toSentence } from "../../api/problem";
import { declineForAll, rollBackReview } from "../../api/reviews";
import type { PendingFollower } from "./followers";

type ReviewAction = "accepted" | "declined" | "rolled back";

export interface ReviewOutcome {
  agent: PendingFollower;
  /** What was done, or failed. */
  action: ReviewAction;
  /** Null if it was done. */
  error: string | null;
}

interface Sent {
  results: { agentId: string; error?: string | null }[];
  reviewId?: string | null;
}

interface ReviewProgress {
  total: number;
  done: number;
}

export function useBulkReview(templateId: string, path: string) {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<ReviewProgress | null>(null);
  const [outcomes, setOutcomes] = useState<ReviewOutcome[]>([]);
  /** Review that can be rolled back. */
  const [reviewId, setReviewId] = useState<string | null>(null);

  /** Replaces earlier outcomes of the same agents. */
  const mergeOutcomes = (updated: ReviewOutcome[]) =>
    setOutcomes((current) => {
      const ids = new Set(updated.map(({ agent }) => agent.id));
      return [...current.filter(({ agent }) => !ids.has(agent.id)), ...updated];
    });
  const withProgress = async (total: number, action: () => Promise<void>) => {
    setProgress({ total, done: 0 });
    try {
      await action();
    } finally {
      setProgress(null);
      for (const key of REVIEW_QUERY_KEYS) void queries.invalidateQueries({ queryKey: [key] });
    }
  };

  const change = (agents: PendingFollower[], action: ReviewAction, send: () => Promise<Sent>) =>
    withProgress(agents.length, async () => {
      try {
        const { results, reviewId } = await send();
        const byId = new Map(agents.map((agent) => [agent.id, agent]));
        mergeOutcomes(
          results.flatMap(({ agentId, error }) => {
            const agent = byId.get(agentId);
            return agent ? [{ agent, action, error: error ?? null }] : [];
          }),
        );
        setReviewId(reviewId ?? null);
      } catch (error) {
        mergeOutcomes(agents.map((agent) => ({ agent, action, error: toSentence(error) })));
      }
    });
  const accept = (agents: PendingFollower[], sha256: string | null, part?: FollowerPart) =>
    change(agents, "accepted", () => acceptForAll(templateId, path, sha256, part));
  const decline = (agents: PendingFollower[], sha256: string | null, reason: string) =>
    change(agents, "declined", () => declineForAll(templateId, path, sha256, reason));
  const rollBack = (id: string) =>
    withProgress(outcomes.length, async () => {
      setOutcomes(await rollBackInOneRequest(id, outcomes));
      setReviewId(null);
    });
  return { progress, outcomes, reviewId, accept, decline, rollBack };
}

/** Outcomes after a roll back; agents that the review did not change keep theirs. */
async function rollBackInOneRequest(
  reviewId: string,
  outcomes: ReviewOutcome[],
): Promise<ReviewOutcome[]> {
  try {
    const { results } = await rollBackReview(reviewId);
    const errors = new Map(results.map(({ agentId, error }) => [agentId, error ?? null]));
    return outcomes.map((outcome) => {
      const error = errors.get(outcome.agent.id);
      return error === undefined ? outcome : { ...outcome, error, action: "rolled back" as const };
    });
  } catch (error) {
    const failed = { error: toSentence(error), action: "rolled back" as const };
    return outcomes.map(({ agent }) => ({ agent, ...failed }));
  }
}
