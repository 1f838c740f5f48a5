// Snippets that connect runtimes and MCP clients to an agent.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Connection = ResponseBody<"/v1/agents/{id}/connection">;
export type Snippet = Connection["snippets"][number];

export const connectionQuery = (agentId: string) =>
  queryOptions({
    queryKey: ["connection", agentId],
    queryFn: () =>
      unwrap(api.GET("/v1/agents/{id}/connection", { params: { path: { id: agentId } } })),
  });

const POLL_MS = 2000;

/** A key, loaded again until it has been used. */
export const keyUseQuery = (id: string) =>
  queryOptions({
    queryKey: ["keys", id],
    queryFn: () => unwrap(api.GET("/v1/keys/{id}", { params: { path: { id } } })),
    refetchInterval: ({ state }) => (state.data?.lastUsedAt ? false : POLL_MS),
  });
