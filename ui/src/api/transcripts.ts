// Sessions of an agent and their transcripts.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type SessionRow = ResponseBody<"/v1/agents/{id}/sessions">["items"][number];
export type Transcript = ResponseBody<"/v1/agents/{id}/sessions/{sid}">;
export type Entry = Transcript["entries"][number];
export type Match = NonNullable<SessionRow["matches"]>[number];

interface SessionFilter {
  q?: string;
  scope?: Transcript["scope"];
}

export const sessionsQuery = (id: string, { q, scope }: SessionFilter) =>
  infiniteQueryOptions({
    queryKey: ["sessions", id, "list", q, scope],
    queryFn: ({ pageParam }) =>
      unwrap(
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
      unwrap(
        api.GET("/v1/agents/{id}/sessions/{sid}", {
          params: { path: { id, sid }, query: { cursor: pageParam, limit: 200 } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });

/** URL of a session's transcript as JSON lines. */
export const transcriptUrl = (id: string, sid: string) =>
  `/v1/agents/${encodeURIComponent(id)}/sessions/${encodeURIComponent(sid)}.jsonl`;
