// The current system prompt of an agent, and its lint findings.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Prompt = ResponseBody<"/v1/agents/{id}/prompt">;
export type Block = Prompt["blocks"][number];
export type Flaw = ResponseBody<"/v1/agents/{id}/prompt/lint">["flaws"][number];
export type Scope = "main" | "shared";

export const promptQuery = (id: string, scope: Scope) =>
  queryOptions({
    queryKey: ["prompt", id, scope],
    queryFn: () =>
      unwrap(api.GET("/v1/agents/{id}/prompt", { params: { path: { id }, query: { scope } } })),
  });

export const flawsQuery = (id: string) =>
  queryOptions({
    queryKey: ["prompt", id, "flaws"],
    queryFn: async () =>
      (await unwrap(api.GET("/v1/agents/{id}/prompt/lint", { params: { path: { id } } }))).flaws,
  });
