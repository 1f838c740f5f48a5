// Runs: the list of them, and each as a time machine.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, graphql, type ResponseBody, take } from "./client";
import { AgentsNamed, RunsListed, type RunsListedQuery } from "./graphql.generated";

export type Run = ResponseBody<"/v1/runs/{id}">;
export type Status = Run["status"];
export type RunEvent = ResponseBody<"/v1/runs/{id}/events">["events"][number];
export type RunChange = ResponseBody<"/v1/runs/{id}/diff">["changes"][number];
export type ListedRun = NonNullable<RunsListedQuery["runs"]>["items"][number];

const PAGE = 50;

export const runsQuery = (agentId?: string) =>
  infiniteQueryOptions({
    queryKey: ["runs", agentId ?? null],
    queryFn: async ({ pageParam, signal }) => {
      const asked = { after: pageParam, first: PAGE, agentId: agentId ?? null };
      const { runs } = await graphql(RunsListed, asked, signal);
      return runs ?? { items: [], next: null };
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });

/** Agents whose name or slug begins so, for whoever picks one. */
export const agentsNamedQuery = (startsWith: string) =>
  queryOptions({
    queryKey: ["agents", "named", startsWith],
    queryFn: async ({ signal }) =>
      (await graphql(AgentsNamed, { startsWith }, signal)).agents?.items ?? [],
  });

const at = (id: string) => ({ params: { path: { id } } });

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id],
    queryFn: () => take(api.GET("/v1/runs/{id}", at(id))),
  });

export const runFilesQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "files"],
    queryFn: async () => (await take(api.GET("/v1/runs/{id}/files", at(id)))).files,
  });

export const runFileQuery = (id: string, path: string) =>
  queryOptions({
    queryKey: ["run", id, "file", path],
    queryFn: () => take(api.GET("/v1/runs/{id}/files/{path}", { params: { path: { id, path } } })),
  });

export const runPromptQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "prompt"],
    queryFn: () => take(api.GET("/v1/runs/{id}/prompt", at(id))),
  });

// What has changed since then is as old as the files are: the keys begin with those of their place.
const placeOf = ({ agentId, owner, runId }: Run) =>
  agentId
    ? ["files", "agent", agentId, "run", runId]
    : ["files", "workspace", owner["workspace"], "run", runId];

export const runChangesQuery = (run: Run) =>
  queryOptions({
    queryKey: [...placeOf(run), "changes"],
    queryFn: async () => (await take(api.GET("/v1/runs/{id}/diff", at(run.runId)))).changes,
  });

export const runChangeQuery = (run: Run, path: string) =>
  queryOptions({
    queryKey: [...placeOf(run), "change", path],
    queryFn: async () => {
      const asked = { params: { path: { id: run.runId }, query: { path } } };
      return (await take(api.GET("/v1/runs/{id}/diff", asked))).changes[0] ?? null;
    },
  });

export const startRun = (asked: {
  agentId?: string;
  workflowId?: string;
  scope?: string;
  replayOf?: string;
}) => take(api.POST("/v1/runs", { body: asked }));

export const endRun = (id: string, status: Status) =>
  take(api.PATCH("/v1/runs/{id}", { ...at(id), body: { status } }));

export const letGo = (id: string) =>
  take(api.PATCH("/v1/runs/{id}", { ...at(id), body: { kept: false } }));
