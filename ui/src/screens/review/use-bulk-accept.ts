// Accepts an update for all agents of a template in one request, which can be rolled back in one,
// or for selected agents one by one.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { acceptForAll, acceptPin, REVIEW_QUERY_KEYS, rollBackForAll } from "../../api/pins";
import { toSentence } from "../../api/problem";
import type { PendingFollower } from "./followers";

const CONCURRENCY = 4;
const NOT_A_FOLLOWER = "No longer uses this template.";

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
  /** Digest that was accepted for all and can be rolled back. */
  const [acceptedForAll, setAcceptedForAll] = useState<string | null>(null);

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

  const acceptAll = (agents: PendingFollower[], sha256: string) =>
    withProgress(agents.length, async () => {
      const accepted = await acceptInOneRequest(templateId, path, agents, sha256);
      mergeOutcomes(accepted);
      setAcceptedForAll(accepted.some(({ error }) => error === null) ? sha256 : null);
    });
  const rollBackAll = (sha256: string) =>
    withProgress(outcomes.length, async () => {
      setOutcomes(await rollBackInOneRequest(templateId, path, outcomes, sha256));
      setAcceptedForAll(null);
    });
  const acceptSelected = (agents: PendingFollower[], sha256: string) =>
    withProgress(agents.length, async () => {
      const queue = [...agents];
      const worker = async () => {
        for (let agent = queue.shift(); agent; agent = queue.shift()) {
          const error = await errorOf(acceptPin(agent.id, path, sha256));
          mergeOutcomes([{ agent, error }]);
          setProgress((current) => current && { ...current, done: current.done + 1 });
        }
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    });
  return { progress, outcomes, acceptedForAll, acceptAll, acceptSelected, rollBackAll };
}

/** Outcomes after a roll back; agents that did not accept for all keep theirs. */
async function rollBackInOneRequest(
  templateId: string,
  path: string,
  outcomes: AcceptOutcome[],
  sha256: string,
): Promise<AcceptOutcome[]> {
  try {
    const { results } = await rollBackForAll(templateId, path, sha256);
    const errors = new Map(results.map(({ agentId, error }) => [agentId, error ?? null]));
    return outcomes.map((outcome) => {
      const error = errors.get(outcome.agent.id);
      return error === undefined ? outcome : { ...outcome, error, isRollBack: true };
    });
  } catch (error) {
    return outcomes.map(({ agent }) => ({ agent, error: toSentence(error), isRollBack: true }));
  }
}

async function acceptInOneRequest(
  templateId: string,
  path: string,
  agents: PendingFollower[],
  sha256: string,
): Promise<AcceptOutcome[]> {
  try {
    const { results } = await acceptForAll(templateId, path, sha256);
    const errors = new Map(results.map(({ agentId, error }) => [agentId, error]));
    return agents.map((agent) => ({
      agent,
      error: errors.has(agent.id) ? (errors.get(agent.id) ?? null) : NOT_A_FOLLOWER,
    }));
  } catch (error) {
    return agents.map((agent) => ({ agent, error: toSentence(error) }));
  }
}

async function errorOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call;
    return null;
  } catch (error) {
    return toSentence(error);
  }
}
