// Memories of an agent.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type RequestBody, type ResponseBody, unwrap, unwrapWithResponse } from "./client";

export type Memory = ResponseBody<"/v1/agents/{id}/memories">["items"][number];
export type NewMemory = RequestBody<"/v1/agents/{id}/memories", "post">;

/** All memories, or those that match `q`, best first. Not counted as a recall. */
export const memoriesQuery = (id: string, q: string) =>
  infiniteQueryOptions({
    queryKey: ["memories", id, q],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/v1/agents/{id}/memories", {
          params: { path: { id }, query: { cursor: pageParam, limit: 50, q: q || undefined } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });

/** Stores a memory; `isNew` is false if it was stored before. */
export async function remember(id: string, body: NewMemory) {
  const call = api.POST("/v1/agents/{id}/memories", { params: { path: { id } }, body });
  const { data, response } = await unwrapWithResponse(call);
  return { memory: data, isNew: response.status === 201 };
}

/** Changes a memory; its line in MEMORY.md follows. */
export const editMemory = (
  id: string,
  memory: string,
  body: RequestBody<"/v1/agents/{id}/memories/{memory}", "patch">,
) =>
  unwrap(
    api.PATCH("/v1/agents/{id}/memories/{memory}", { params: { path: { id, memory } }, body }),
  );

export const forget = (id: string, memory: string) =>
  unwrap(api.DELETE("/v1/agents/{id}/memories/{memory}", { params: { path: { id, memory } } }));
