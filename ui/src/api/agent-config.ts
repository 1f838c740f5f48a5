// Prompt and dreaming settings in an agent's config, with their defaults.

import type { Agent } from "./agents";

export interface PromotionCriteria {
  minScore: number;
  minRecallCount: number;
  minUniqueQueries: number;
  minUniqueDays: number;
  maxPromotionsPerSweep: number;
  review: boolean;
  enabled: boolean;
}

const DEFAULT_CRITERIA: PromotionCriteria = {
  minScore: 0.35,
  minRecallCount: 3,
  minUniqueQueries: 2,
  minUniqueDays: 1,
  maxPromotionsPerSweep: 20,
  review: false,
  enabled: false,
};

type Config = { dreaming?: Partial<PromotionCriteria>; promptChars?: number };
const configOf = (agent: Agent) => agent.config as Config;

/** Criteria a memory must meet to be promoted to MEMORY.md. */
export const promotionCriteriaOf = (agent: Agent): PromotionCriteria => ({
  ...DEFAULT_CRITERIA,
  ...configOf(agent).dreaming,
});

/** Maximum characters of this agent's prompt. */
export const promptCharLimitOf = (agent: Agent): number => configOf(agent).promptChars ?? 60_000;
