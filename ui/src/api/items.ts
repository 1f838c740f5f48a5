// Texts under keys that agents share: those of a person's private agents, or of one shared agent.

import { queryOptions } from "@tanstack/react-query";
import { all, api, type ResponseBody, take, taken } from "./client";

export type Item = ResponseBody<"/v1/agents/{id}/items/{key}">;
export type ItemRow = ResponseBody<"/v1/agents/{id}/items">["items"][number];

export const itemsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ["items", agentId, "list"],
    queryFn: () => {
      const page = (cursor?: string) =>
        take(
          api.GET("/v1/agents/{id}/items", {
            params: { path: { id: agentId }, query: { limit: 500, cursor } },
          }),
        );
      return all(page);
    },
  });

/** One item, as it is now or as it was at a version. */
export const itemQuery = (agentId: string, key: string, version?: number) =>
  queryOptions({
    queryKey: ["items", agentId, "one", key, version ?? "now"],
    queryFn: () =>
      take(
        api.GET("/v1/agents/{id}/items/{key}", {
          params: { path: { id: agentId, key }, query: { version } },
        }),
      ),
  });

/** Writes an item that is still as it was read, or that is not there yet where no etag is given. */
export async function putItem(agentId: string, key: string, value: string, etag?: string) {
  const header = etag ? { "If-Match": etag } : { "If-None-Match": "*" as const };
  const { data, response } = await taken(
    api.PUT("/v1/agents/{id}/items/{key}", {
      params: { path: { id: agentId, key }, header },
      body: { value },
    }),
  );
  return { item: data as Item, warning: response.headers.get("Carrel-Warning") };
}

export const deleteItem = (agentId: string, key: string, etag: string) =>
  take(
    api.DELETE("/v1/agents/{id}/items/{key}", {
      params: { path: { id: agentId, key }, header: { "If-Match": etag } },
    }),
  );
