import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Overview = ResponseBody<"/v1/overview">;

/** State of all agents that the caller may see, in counts. */
export const overviewQuery = (days: number) =>
  queryOptions({
    queryKey: ["overview", days],
    queryFn: () => unwrap(api.GET("/v1/overview", { params: { query: { days } } })),
    placeholderData: keepPreviousData,
  });

const ACTIVITY_LIMIT = 12;
export type ActivityRun = ResponseBody<"/v1/runs">["items"][number];
export type ActivityChange = ResponseBody<"/v1/audit">["items"][number];

/** The latest runs. */
export const activityRunsQuery = queryOptions({
  queryKey: ["activity", "runs"],
  queryFn: async () =>
    (await unwrap(api.GET("/v1/runs", { params: { query: { limit: ACTIVITY_LIMIT } } }))).items,
});

/** The latest changes of records; only admins may read them. */
export const latestChangesQuery = queryOptions({
  queryKey: ["activity", "changes"],
  queryFn: async () =>
    (await unwrap(api.GET("/v1/audit", { params: { query: { limit: ACTIVITY_LIMIT } } }))).items,
});
