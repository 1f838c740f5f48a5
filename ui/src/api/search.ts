import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import { fileUrl } from "./files";

export type Hit = ResponseBody<"/v1/search">["items"][number];

/** Searches files, memories and sessions; needs at least 2 characters. */
export const searchQuery = (text: string, limit = 20) =>
  queryOptions({
    queryKey: ["search", text.trim(), limit],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/v1/search", { params: { query: { q: text.trim(), limit } }, signal })),
    enabled: text.trim().length > 1,
    placeholderData: keepPreviousData,
  });

/** Console URL of a search hit. */
export function hitUrl(hit: Hit): string {
  const agent = `/agents/${encodeURIComponent(hit.agentId ?? "")}`;
  if (hit.kind === "session") {
    const entry = hit.entry ? `?entry=${hit.entry}` : "";
    return `${agent}/sessions/${encodeURIComponent(hit.sessionId ?? "")}${entry}`;
  }
  if (hit.kind === "memory") return `${agent}/memory`;
  if (hit.scope === "agent") return fileUrl({ kind: "agent", id: hit.agentId ?? "" }, hit.path);
  if (hit.scope === "template") {
    return fileUrl({ kind: "template", id: hit.templateId ?? "" }, hit.path);
  }
  if (hit.scope === "workspace") {
    return fileUrl({ kind: "workspace", id: hit.workspaceId ?? "" }, hit.path);
  }
  return fileUrl({ kind: "defaults", id: "" }, hit.path);
}
