// Runs, with the files and the prompt of their snapshots.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { startOfDay, startOfNextDay } from "../components/days";
import { api, graphql, type ResponseBody, unwrap } from "./client";
import { FindAgents, ListRuns, type ListRunsQuery } from "./graphql.generated";

export type Run = ResponseBody<"/v1/runs/{id}">;
export type RunStatus = Run["status"];
export type RunEvent = ResponseBody<"/v1/runs/{id}/events">["events"][number];
export type RunChange = ResponseBody<"/v1/runs/{id}/diff">["changes"][number];
export type ListedRun = NonNullable<ListRunsQuery["runs"]>["items"][number];

const PAGE_SIZE = 50;

export interface RunFilters {
  status: RunStatus | null;
  /** Days, of UTC. */
  from: string | null;
  to: string | null;
}

/** Runs that the filters select, newest first. */
export const runsQuery = (
  agentId?: string,
  { status, from, to }: RunFilters = { status: null, from: null, to: null },
) =>
  infiniteQueryOptions({
    queryKey: ["runs", agentId ?? null, status, from, to],
    queryFn: async ({ pageParam, signal }) => {
      const variables = {
        after: pageParam,
        first: PAGE_SIZE,
        agentId: agentId ?? null,
        status,
        from: from && startOfDay(from),
        to: to && startOfNextDay(to),
      };
      const { runs } = await graphql(ListRuns, variables, signal);
      return runs ?? { items: [], next: null, total: null };
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });

/** Agents whose name or slug starts with a text. */
export const findAgentsQuery = (startsWith: string) =>
  queryOptions({
    queryKey: ["agents", "named", startsWith],
    queryFn: async ({ signal }) =>
      (await graphql(FindAgents, { startsWith }, signal)).agents?.items ?? [],
  });

const pathParams = (id: string) => ({ params: { path: { id } } });

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: () => unwrap(api.GET("/v1/runs/{id}", pathParams(id))),
  });

export const runFilesQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "files"],
    queryFn: async () => (await unwrap(api.GET("/v1/runs/{id}/files", pathParams(id)))).files,
  });

export const runFileQuery = (id: string, path: string) =>
  queryOptions({
    queryKey: ["run", id, "file", path],
    queryFn: () =>
      unwrap(api.GET("/v1/runs/{id}/files/{path}", { params: { path: { id, path } } })),
  });

export const runPromptQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "prompt"],
    queryFn: () => unwrap(api.GET("/v1/runs/{id}/prompt", pathParams(id))),
  });

// Changes since a run become stale with the files, so their keys start with the files' keys.
const filesQueryKey = ({ agentId, owner, runId }: Run) =>
  agentId
    ? ["files", "agent", agentId, "run", runId]
    : ["files", "workspace", owner["workspace"], "run", runId];

export const runChangesQuery = (run: Run) =>
  queryOptions({
    queryKey: [...filesQueryKey(run), "changes"],
    queryFn: async () =>
      (await unwrap(api.GET("/v1/runs/{id}/diff", pathParams(run.runId)))).changes,
  });

export const runChangeQuery = (run: Run, path: string) =>
  queryOptions({
    queryKey: [...filesQueryKey(run), "change", path],
    queryFn: async () => {
      const options = { params: { path: { id: run.runId }, query: { path } } };
      return (await unwrap(api.GET("/v1/runs/{id}/diff", options))).changes[0] ?? null;
    },
  });

export const startRun = (body: {
  agentId?: string;
  workflowId?: string;
  scope?: string;
  replayOf?: string;
}) => unwrap(api.POST("/v1/runs", { body }));

export const endRun = (id: string, status: RunStatus, reason: string) =>
  unwrap(
    api.PATCH("/v1/runs/{id}", {
      ...pathParams(id),
      body: { status, ...(reason && { reason }) },
    }),
  );

export const deleteSnapshot = (id: string) =>
  unwrap(api.PATCH("/v1/runs/{id}", { ...pathParams(id), body: { kept: false } }));
