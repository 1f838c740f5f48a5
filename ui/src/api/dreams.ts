// Dreams of an agent: what they promoted and what not, and those that wait to be looked at.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

export type Dream = ResponseBody<"/v1/agents/{id}/dreams/{dream}">;
export type DreamRow = ResponseBody<"/v1/agents/{id}/dreams">["items"][number];
export type Promoted = Dream["promoted"][number];
export type Rejected = Dream["rejected"][number];

export const dreamsQuery = (id: string) =>
  queryOptions({
    queryKey: ["dreams", id],
    queryFn: async () =>
      (await take(api.GET("/v1/agents/{id}/dreams", { params: { path: { id } } }))).items,
  });

export const dreamQuery = (id: string, dream: string) =>
  queryOptions({
    queryKey: ["dreams", id, dream],
    queryFn: () =>
      take(api.GET("/v1/agents/{id}/dreams/{dream}", { params: { path: { id, dream } } })),
  });

export const sweep = (id: string, dryRun: boolean) =>
  take(api.POST("/v1/agents/{id}/dreams", { params: { path: { id } }, body: { dryRun } }));

export const approveDream = (id: string, dream: string) =>
  take(api.POST("/v1/agents/{id}/dreams/{dream}/approve", { params: { path: { id, dream } } }));

export const rejectDream = (id: string, dream: string, reason: string) =>
  take(
    api.POST("/v1/agents/{id}/dreams/{dream}/reject", {
      params: { path: { id, dream } },
      body: { reason },
    }),
  );
