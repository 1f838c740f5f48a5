// What an agent's config says of its prompt and its dreams, where it says so.

import type { Agent } from "./agents";

export interface Gates {
  minScore: number;
  minRecallCount: number;
  minUniqueQueries: number;
  minUniqueDays: number;
  maxPromotionsPerSweep: number;
  review: boolean;
  enabled: boolean;
}

const GATES: Gates = {
  minScore: 0.35,
  minRecallCount: 3,
  minUniqueQueries: 2,
  minUniqueDays: 1,
  maxPromotionsPerSweep: 20,
  review: false,
  enabled: false,
};

type Config = { dreaming?: Partial<Gates>; promptChars?: number };
const configOf = (agent: Agent) => agent.config as Config;

/** What a memory must pass to be promoted by this agent's dreams. */
export const gatesOf = (agent: Agent): Gates => ({
  ...GATES,
  ...configOf(agent).dreaming,
});

/** How many characters this agent's prompt may have. */
export const promptCharsOf = (agent: Agent): number => configOf(agent).promptChars ?? 60_000;
