import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import { DEFAULTS_ID } from "./pins";

export type Inbox = ResponseBody<"/v1/inbox">;
export type InboxGroup = Inbox["groups"][number];
export type WaitingPin = ResponseBody<"/v1/inbox/pins">["items"][number];

/** Groups and counts of pinned updates, approvals and dreams that need a decision. */
export const inboxQuery = (mine: boolean) =>
  queryOptions({
    queryKey: ["inbox", mine],
    queryFn: () => unwrap(api.GET("/v1/inbox", { params: { query: { mine, limit: 25 } } })),
  });

const FIRST_PAGE = 6;
const LATER_PAGES = 50;

/** Agents for which the update of a group waits. */
export const waitingPinsQuery = (
  { path, templateId }: Pick<InboxGroup, "path" | "templateId">,
  filters: { mine: boolean; overridden: boolean },
) =>
  infiniteQueryOptions({
    queryKey: ["inbox", "pins", path, templateId, filters.mine, filters.overridden],
    queryFn: ({ pageParam: cursor }) => {
      const limit = cursor ? LATER_PAGES : FIRST_PAGE;
      const query = { ...filters, path, offeredBy: templateId ?? DEFAULTS_ID, limit, cursor };
      return unwrap(api.GET("/v1/inbox/pins", { params: { query } }));
    },
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
  });

/** Dreams that need a review, oldest first. */
export const waitingDreamsQuery = (mine: boolean) =>
  infiniteQueryOptions({
    queryKey: ["inbox", "dreams", mine],
    queryFn: ({ pageParam: cursor }) =>
      unwrap(api.GET("/v1/inbox/dreams", { params: { query: { mine, limit: 25, cursor } } })),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
  });
