// What one chooses from in forms: templates, people, sandboxes and shared workspaces, by name.

import { queryOptions } from "@tanstack/react-query";
import { all, api, take } from "./client";

const page = (cursor: string | undefined) => ({
  params: { query: { limit: 500, ...(cursor && { cursor }) } },
});

export const templateChoices = queryOptions({
  queryKey: ["templates", "choices"],
  queryFn: () => all((cursor) => take(api.GET("/v1/templates", page(cursor))), 2_000),
  staleTime: 60_000,
});

export const peopleChoices = queryOptions({
  queryKey: ["people", "choices"],
  queryFn: () => all((cursor) => take(api.GET("/v1/people", page(cursor))), 5_000),
  staleTime: 60_000,
});

export const sandboxChoices = queryOptions({
  queryKey: ["sandboxes", "choices"],
  queryFn: async () => (await take(api.GET("/accounts/me/sandboxes"))).sandboxes,
});

export const workspaceChoices = queryOptions({
  queryKey: ["workspaces", "choices"],
  queryFn: async () => (await take(api.GET("/accounts/me/workspaces"))).workspaces,
});
