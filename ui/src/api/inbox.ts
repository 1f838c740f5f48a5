import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, take } from "./client";

export type InboxShown = Schemas["Waiting"];

/** What waits for somebody: pins to be reviewed, calls to be approved, dreams to be let land. */
export const inboxQuery = (mine: boolean) =>
  queryOptions({
    queryKey: ["inbox", mine],
    queryFn: () => take(api.GET("/v1/inbox", { params: { query: { mine } } })),
  });
