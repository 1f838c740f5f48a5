// Sessions of an agent, and what was said in them.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

export type SessionListed = ResponseBody<"/v1/agents/{id}/sessions">["items"][number];
export type Transcript = ResponseBody<"/v1/agents/{id}/sessions/{sid}">;
export type Entry = Transcript["entries"][number];
export type Match = NonNullable<SessionListed["matches"]>[number];

interface Wanted {
  q?: string;
  scope?: Transcript["scope"];
}

export const sessionsQuery = (id: string, { q, scope }: Wanted) =>
  infiniteQueryOptions({
    queryKey: ["sessions", id, "list", q, scope],
    queryFn: ({ pageParam }) =>
      take(
        api.GET("/v1/agents/{id}/sessions", {
          params: {
            path: { id },
            query: { cursor: pageParam, limit: 50, q: q || undefined, scope },
          },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });

export const transcriptQuery = (id: string, sid: string) =>
  infiniteQueryOptions({
    queryKey: ["sessions", id, "transcript", sid],
    queryFn: ({ pageParam }) =>
      take(
        api.GET("/v1/agents/{id}/sessions/{sid}", {
          params: { path: { id, sid }, query: { cursor: pageParam, limit: 200 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });

/** Where a session's transcript can be had as lines of JSON. */
export const linesOf = (id: string, sid: string) =>
  `/v1/agents/${encodeURIComponent(id)}/sessions/${encodeURIComponent(sid)}.jsonl`;
