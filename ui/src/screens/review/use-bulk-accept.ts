// Accepts an update for agents in one request, which can be rolled back in one.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { acceptForAll, type FollowerPart, REVIEW_QUERY_KEYS } from "../../api/pins";
import { toSentence } from "../../api/problem";
import { rollBackReview } from "../../api/reviews";
import type { PendingFollower } from "./followers";

export interface AcceptOutcome {
  agent: PendingFollower;
  /** Null if accepted, or rolled back. */
  error: string | null;
  /** Whether it is the outcome of a roll back. */
  isRollBack?: boolean;
}

interface AcceptProgress {
  total: number;
  done: number;
}

export function useBulkAccept(templateId: string, path: string) {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<AcceptProgress | null>(null);
  const [outcomes, setOutcomes] = useState<AcceptOutcome[]>([]);
  /** Review that can be rolled back. */
  const [reviewId, setReviewId] = useState<string | null>(null);

  /** Replaces earlier outcomes of the same agents. */
  const mergeOutcomes = (updated: AcceptOutcome[]) =>
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

  const accept = (agents: PendingFollower[], sha256: string, part?: FollowerPart) =>
    withProgress(agents.length, async () => {
      try {
        const { results, reviewId } = await acceptForAll(templateId, path, sha256, part);
        const byId = new Map(agents.map((agent) => [agent.id, agent]));
        mergeOutcomes(
          results.flatMap(({ agentId, error }) => {
            const agent = byId.get(agentId);
            return agent ? [{ agent, error: error ?? null }] : [];
          }),
        );
        setReviewId(reviewId ?? null);
      } catch (error) {
        mergeOutcomes(agents.map((agent) => ({ agent, error: toSentence(error) })));
      }
    });
  const rollBack = (id: string) =>
    withProgress(outcomes.length, async () => {
      setOutcomes(await rollBackInOneRequest(id, outcomes));
      setReviewId(null);
    });
  return { progress, outcomes, reviewId, accept, rollBack };
}

/** Outcomes after a roll back; agents that the review did not change keep theirs. */
async function rollBackInOneRequest(
  reviewId: string,
  outcomes: AcceptOutcome[],
): Promise<AcceptOutcome[]> {
  try {
    const { results } = await rollBackReview(reviewId);
    const errors = new Map(results.map(({ agentId, error }) => [agentId, error ?? null]));
    return outcomes.map((outcome) => {
      const error = errors.get(outcome.agent.id);
      return error === undefined ? outcome : { ...outcome, error, isRollBack: true };
    });
  } catch (error) {
    return outcomes.map(({ agent }) => ({ agent, error: toSentence(error), isRollBack: true }));
  }
}
