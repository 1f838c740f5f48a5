// Provenance: what a run was made of, what happened in it, and which runs read a version.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import type { FileScope } from "./files";

export type Provenance = ResponseBody<"/v1/runs/{id}/provenance">;
export type FileProvenance = Provenance["files"][number];
export type FileVersion = NonNullable<FileProvenance["written"]>;
export type Author = FileVersion["author"];
export type EntryPreview = Provenance["entries"][number];
export type TimeLineItem = ResponseBody<"/v1/runs/{id}/timeline">["items"][number];

export const provenanceQuery = (id: string) =>
  queryOptions({
    queryKey: ["run", id, "provenance"],
    queryFn: () => unwrap(api.GET("/v1/runs/{id}/provenance", { params: { path: { id } } })),
  });

export const entryProvenanceQuery = (id: string, sid: string, number: number) =>
  queryOptions({
    queryKey: ["sessions", id, "provenance", sid, number],
    queryFn: () =>
      unwrap(
        api.GET("/v1/agents/{id}/sessions/{sid}/entries/{number}/provenance", {
          params: { path: { id, sid, number } },
        }),
      ),
  });

const READERS_PATHS = {
  agent: "/v1/agents/{id}/files/{path}/readers",
  template: "/v1/templates/{id}/files/{path}/readers",
  workspace: "/v1/workspaces/{id}/files/{path}/readers",
  defaults: "/v1/defaults/files/{path}/readers",
} as const;

/** Runs that read a version of a file from its layer, newest first. */
export const readersQuery = (scope: FileScope, path: string, version: number) =>
  infiniteQueryOptions({
    queryKey: ["runs", "readers", scope.kind, scope.id, path, version],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET(READERS_PATHS[scope.kind] as (typeof READERS_PATHS)["agent"], {
          params: { path: { id: scope.id, path }, query: { version, cursor: pageParam } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });

export const timeLineQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["run", id, "timeline"],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/v1/runs/{id}/timeline", {
          params: { path: { id }, query: { limit: 100, cursor: pageParam } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });
