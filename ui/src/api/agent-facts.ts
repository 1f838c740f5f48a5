// One agent's record, and what its config says of prompts and dreams where it says so.

import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, take } from "./client";

export type Agent = Schemas["Agent"];

export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: ["agent", id],
    queryFn: () => take(api.GET("/v1/agents/{id}", { params: { path: { id } } })),
  });

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
const configOf = (agent: Agent | undefined) => (agent?.config ?? {}) as Config;

/** What a memory must pass to be promoted by this agent's dreams. */
export const gatesOf = (agent: Agent | undefined): Gates => ({
  ...GATES,
  ...configOf(agent).dreaming,
});

/** How many characters this agent's prompt may have. */
export const promptCharsOf = (agent: Agent | undefined): number =>
  configOf(agent).promptChars ?? 60_000;
