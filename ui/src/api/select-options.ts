// Options of select fields: templates, people, sandboxes and shared workspaces.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, unwrap } from "./client";

const pageOptions = (cursor: string | undefined) => ({
  params: { query: { limit: 500, ...(cursor && { cursor }) } },
});

export const templateOptionsQuery = queryOptions({
  queryKey: ["templates", "choices"],
  queryFn: () =>
    fetchAllPages((cursor) => unwrap(api.GET("/v1/templates", pageOptions(cursor))), 2_000),
  staleTime: 60_000,
});

export const peopleOptionsQuery = queryOptions({
  queryKey: ["people", "choices"],
  queryFn: () =>
    fetchAllPages((cursor) => unwrap(api.GET("/v1/people", pageOptions(cursor))), 5_000),
  staleTime: 60_000,
});

export const sandboxOptionsQuery = queryOptions({
  queryKey: ["sandboxes", "choices"],
  queryFn: async () => (await unwrap(api.GET("/accounts/me/sandboxes"))).sandboxes,
});

export const workspaceOptionsQuery = queryOptions({
  queryKey: ["workspaces", "choices"],
  queryFn: async () => (await unwrap(api.GET("/accounts/me/workspaces"))).workspaces,
});
