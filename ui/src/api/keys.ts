// Keys: what a person, a service or an agent shows to be let in. Each is seen once, when it is made.

import { queryOptions } from "@tanstack/react-query";
import { all, api, type RequestBody, type ResponseBody, take } from "./client";

export type Key = ResponseBody<"/v1/keys">["items"][number];
export type CreatedKey = ResponseBody<"/v1/keys", "post">;
export type NewKey = RequestBody<"/v1/keys", "post">;
export type Permission = NonNullable<NewKey["scopes"]>[number];

export const PERMISSIONS: Record<Permission, string> = {
  "workspace:read": "Read files, items and prompts",
  "workspace:write": "Write files and items, call tools",
  "runs:read": "Look at runs",
  "runs:write": "Start and end runs",
  "events:read": "Follow events",
  "tenant:read": "See agents, people and policy",
  "tenant:admin": "Change all of them",
};

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: () =>
    all((cursor) => take(api.GET("/v1/keys", { params: { query: { limit: 500, cursor } } }))),
});

export const makeKey = (body: NewKey) => take(api.POST("/v1/keys", { body }));

export const revokeKey = (id: string) =>
  take(api.DELETE("/v1/keys/{id}", { params: { path: { id } } }));
