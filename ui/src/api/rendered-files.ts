// Files and drafts with their placeholders filled in, as an agent is served them.

import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

const FILE_PATH = "/v1/agents/{id}/files/{path}";

export const servedFileQuery = (agentId: string, path: string, etag: string) =>
  queryOptions({
    queryKey: ["files", "agent", agentId, "served", path, etag],
    queryFn: async () =>
      (await unwrap(api.GET(FILE_PATH, { params: { path: { id: agentId, path } } }))).content ?? "",
  });

export interface DraftText {
  text: string;
  /** Increases with every change; used as query key instead of the text. */
  revision: number;
}

export const renderedDraftQuery = (agentId: string, path: string, draft: DraftText) =>
  queryOptions({
    queryKey: ["files", "agent", agentId, "draft", path, draft.revision],
    gcTime: 0,
    queryFn: async ({ signal }) =>
      (
        await unwrap(
          api.POST(`${FILE_PATH}/render`, {
            params: { path: { id: agentId, path } },
            body: { content: draft.text },
            signal,
          }),
        )
      ).content,
  });
