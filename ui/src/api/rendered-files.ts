// A file as it is served: what is stored with its placeholders filled in, or a draft likewise.

import { queryOptions } from "@tanstack/react-query";
import { api, take } from "./client";

const FILE = "/v1/agents/{id}/files/{path}";

export const servedQuery = (agentId: string, path: string, etag: string) =>
  queryOptions({
    queryKey: ["files", "agent", agentId, "served", path, etag],
    queryFn: async () =>
      (await take(api.GET(FILE, { params: { path: { id: agentId, path } } }))).content ?? "",
  });

export interface DraftText {
  text: string;
  /** Another with every other text: long ones make poor keys. */
  stamp: number;
}

export const renderedQuery = (agentId: string, path: string, draft: DraftText) =>
  queryOptions({
    queryKey: ["files", "agent", agentId, "draft", path, draft.stamp],
    gcTime: 0,
    queryFn: async ({ signal }) =>
      (
        await take(
          api.POST(`${FILE}/render`, {
            params: { path: { id: agentId, path } },
            body: { content: draft.text },
            signal,
          }),
        )
      ).content,
  });
