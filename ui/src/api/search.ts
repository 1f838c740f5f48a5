import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";
import { addressOf } from "./files";

export type Hit = ResponseBody<"/v1/search">["items"][number];

/** Files, memories and what was said in sessions; nothing is asked for without a word. */
export const searchQuery = (text: string, limit = 20) =>
  queryOptions({
    queryKey: ["search", text.trim(), limit],
    queryFn: ({ signal }) =>
      take(api.GET("/v1/search", { params: { query: { q: text.trim(), limit } }, signal })),
    enabled: text.trim().length > 1,
    placeholderData: keepPreviousData,
  });

/** Where the desk shows what was found. */
export function placeOf(hit: Hit): string {
  const agent = `/agents/${encodeURIComponent(hit.agentId ?? "")}`;
  if (hit.kind === "session") {
    const entry = hit.entry ? `?entry=${hit.entry}` : "";
    return `${agent}/sessions/${encodeURIComponent(hit.sessionId ?? "")}${entry}`;
  }
  if (hit.kind === "memory") return `${agent}/memory`;
  if (hit.scope === "agent") return addressOf({ kind: "agent", id: hit.agentId ?? "" }, hit.path);
  if (hit.scope === "template") {
    return addressOf({ kind: "template", id: hit.templateId ?? "" }, hit.path);
  }
  if (hit.scope === "workspace") {
    return addressOf({ kind: "workspace", id: hit.workspaceId ?? "" }, hit.path);
  }
  return addressOf({ kind: "defaults", id: "" }, hit.path);
}
