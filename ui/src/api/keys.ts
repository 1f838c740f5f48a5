// API keys of people, services and agents. A key is readable only in the response that creates it.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, type RequestBody, type ResponseBody, unwrap } from "./client";

export type Key = ResponseBody<"/v1/keys">["items"][number];
export type CreatedKey = ResponseBody<"/v1/keys", "post">;
export type NewKey = RequestBody<"/v1/keys", "post">;
export type Permission = NonNullable<NewKey["scopes"]>[number];

export const PERMISSIONS: Record<Permission, string> = {
  "workspace:read": "Read files, items and prompts",
  "workspace:write": "Write files and items, call tools",
  "runs:read": "Read runs",
  "runs:write": "Start and end runs",
  "events:read": "Read events",
  "tenant:read": "Read agents, people and policy",
  "tenant:admin": "Manage agents, people and policy",
};

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: () =>
    fetchAllPages((cursor) =>
      unwrap(api.GET("/v1/keys", { params: { query: { limit: 500, cursor } } })),
    ),
});

export const createKey = (body: NewKey) => unwrap(api.POST("/v1/keys", { body }));

/** Replaces a key; the old one stays valid for an hour. */
export const rotateKey = (id: string) =>
  unwrap(api.POST("/v1/keys/{id}/rotate", { params: { path: { id } } }));

export const revokeKey = (id: string) =>
  unwrap(api.DELETE("/v1/keys/{id}", { params: { path: { id } } }));
