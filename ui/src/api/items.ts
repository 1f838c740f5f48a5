// Items: keyed texts shared by a person's private agents, or owned by one shared agent.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap, unwrapWithResponse } from "./client";
import { PAGE_SIZE, pagesQuery } from "./pages";

export type Item = ResponseBody<"/v1/agents/{id}/items/{key}">;
export type ItemRow = ResponseBody<"/v1/agents/{id}/items">["items"][number];

/** Items whose key starts with the prefix, last written first. */
export const itemsQuery = (agentId: string, prefix: string) =>
  pagesQuery(["items", agentId, "list", prefix], (cursor) =>
    unwrap(
      api.GET("/v1/agents/{id}/items", {
        params: {
          path: { id: agentId },
          query: { limit: PAGE_SIZE, cursor, ...(prefix && { prefix }) },
        },
      }),
    ),
  );

/** One item, current or at a version. */
export const itemQuery = (agentId: string, key: string, version?: number) =>
  queryOptions({
    queryKey: ["items", agentId, "one", key, version ?? "now"],
    queryFn: () =>
      unwrap(
        api.GET("/v1/agents/{id}/items/{key}", {
          params: { path: { id: agentId, key }, query: { version } },
        }),
      ),
  });

/** Writes an item if its etag is unchanged; without an etag, only if the key is free. */
export async function putItem(agentId: string, key: string, value: string, etag?: string) {
  const header = etag ? { "If-Match": etag } : { "If-None-Match": "*" as const };
  const { data, response } = await unwrapWithResponse(
    api.PUT("/v1/agents/{id}/items/{key}", {
      params: { path: { id: agentId, key }, header },
      body: { value },
    }),
  );
  return { item: data as Item, warning: response.headers.get("Carrel-Warning") };
}

export const deleteItem = (agentId: string, key: string, etag: string) =>
  unwrap(
    api.DELETE("/v1/agents/{id}/items/{key}", {
      params: { path: { id: agentId, key }, header: { "If-Match": etag } },
    }),
  );
