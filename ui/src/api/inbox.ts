import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Inbox = ResponseBody<"/v1/inbox">;

/** Pinned updates, approvals and dreams that need a decision. */
export const inboxQuery = (mine: boolean) =>
  queryOptions({
    queryKey: ["inbox", mine],
    queryFn: () => unwrap(api.GET("/v1/inbox", { params: { query: { mine } } })),
  });
