// What an agent was told to remember.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type RequestBody, type ResponseBody, take, taken } from "./client";

export type Memory = ResponseBody<"/v1/agents/{id}/memories">["items"][number];
export type NewMemory = RequestBody<"/v1/agents/{id}/memories", "post">;

/** All of them, or those that a question brings up, best first. Looking leaves no trace. */
export const memoriesQuery = (id: string, q: string) =>
  infiniteQueryOptions({
    queryKey: ["memories", id, q],
    queryFn: ({ pageParam }) =>
      take(
        api.GET("/v1/agents/{id}/memories", {
          params: { path: { id }, query: { cursor: pageParam, limit: 50, q: q || undefined } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });

/** Keeps it; `isNew` is false where it was remembered already. */
export async function remember(id: string, body: NewMemory) {
  const asked = api.POST("/v1/agents/{id}/memories", { params: { path: { id } }, body });
  const { data, response } = await taken(asked);
  return { memory: data, isNew: response.status === 201 };
}

export const forget = (id: string, memory: string) =>
  take(api.DELETE("/v1/agents/{id}/memories/{memory}", { params: { path: { id, memory } } }));
