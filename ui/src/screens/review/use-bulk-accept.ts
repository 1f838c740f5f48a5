// Accepting one text for many: all followers at once, or some one after the other; what failed can
// be tried again alone.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { acceptForAll, acceptPin, REVIEWED } from "../../api/pins";
import { sentence } from "../../api/problem";
import type { Waiting } from "./followers";

const AT_ONCE = 4;
const GONE = "It follows the template no longer.";

export interface Outcome {
  agent: Waiting;
  /** Why not; null where it is accepted. */
  error: string | null;
}

interface Work {
  total: number;
  done: number;
}

export function useBulkAccept(templateId: string, path: string) {
  const queries = useQueryClient();
  const [work, setWork] = useState<Work | null>(null);
  const [outcomes, setOutcomes] = useState<Outcome[]>([]);

  /** Keeps the newest outcome of each agent. */
  const keep = (fresh: Outcome[]) =>
    setOutcomes((before) => {
      const ids = new Set(fresh.map(({ agent }) => agent.id));
      return [...before.filter(({ agent }) => !ids.has(agent.id)), ...fresh];
    });
  const during = async (total: number, act: () => Promise<void>) => {
    setWork({ total, done: 0 });
    try {
      await act();
    } finally {
      setWork(null);
      for (const key of REVIEWED) void queries.invalidateQueries({ queryKey: [key] });
    }
  };

  const forAll = (agents: Waiting[], sha256: string) =>
    during(agents.length, async () => keep(await allAtOnce(templateId, path, agents, sha256)));
  const forSome = (agents: Waiting[], sha256: string) =>
    during(agents.length, async () => {
      const waiting = [...agents];
      const next = async () => {
        for (let agent = waiting.shift(); agent; agent = waiting.shift()) {
          const error = await failure(acceptPin(agent.id, path, sha256));
          keep([{ agent, error }]);
          setWork((now) => now && { ...now, done: now.done + 1 });
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, next));
    });
  return { work, outcomes, forAll, forSome };
}

async function allAtOnce(
  templateId: string,
  path: string,
  agents: Waiting[],
  sha256: string,
): Promise<Outcome[]> {
  try {
    const { results } = await acceptForAll(templateId, path, sha256);
    const errors = new Map(results.map(({ agentId, error }) => [agentId, error]));
    return agents.map((agent) => ({
      agent,
      error: errors.has(agent.id) ? (errors.get(agent.id) ?? null) : GONE,
    }));
  } catch (error) {
    return agents.map((agent) => ({ agent, error: sentence(error) }));
  }
}

async function failure(asked: Promise<unknown>): Promise<string | null> {
  try {
    await asked;
    return null;
  } catch (error) {
    return sentence(error);
  }
}
