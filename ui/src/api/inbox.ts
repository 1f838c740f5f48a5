import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

export type InboxShown = ResponseBody<"/v1/inbox">;

/** What waits for somebody: pins to be reviewed, calls to be approved, dreams to be let land. */
export const inboxQuery = (mine: boolean) =>
  queryOptions({
    queryKey: ["inbox", mine],
    queryFn: () => take(api.GET("/v1/inbox", { params: { query: { mine } } })),
  });
