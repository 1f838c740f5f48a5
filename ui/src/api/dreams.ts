// Dreams (memory consolidation runs) of an agent, and their review.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import { pagesQuery } from "./pages";

export type Dream = ResponseBody<"/v1/agents/{id}/dreams/{dream}">;
export type DreamRow = ResponseBody<"/v1/agents/{id}/dreams">["items"][number];
export type Promoted = Dream["promoted"][number];
export type Rejected = Dream["rejected"][number];

export const dreamsQuery = (id: string) =>
  pagesQuery(["dreams", id, "list"], () =>
    unwrap(api.GET("/v1/agents/{id}/dreams", { params: { path: { id } } })),
  );

export const dreamQuery = (id: string, dream: string) =>
  queryOptions({
    queryKey: ["dreams", id, dream],
    queryFn: () =>
      unwrap(api.GET("/v1/agents/{id}/dreams/{dream}", { params: { path: { id, dream } } })),
  });

export const runDream = (id: string, dryRun: boolean) =>
  unwrap(api.POST("/v1/agents/{id}/dreams", { params: { path: { id } }, body: { dryRun } }));

export const approveDream = (id: string, dream: string) =>
  unwrap(api.POST("/v1/agents/{id}/dreams/{dream}/approve", { params: { path: { id, dream } } }));

export const rejectDream = (id: string, dream: string, reason: string) =>
  unwrap(
    api.POST("/v1/agents/{id}/dreams/{dream}/reject", {
      params: { path: { id, dream } },
      body: { reason },
    }),
  );
