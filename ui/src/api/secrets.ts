// Secrets that are kept out of every file: their values go in and never come out.

import { queryOptions } from "@tanstack/react-query";
import { all, api, take } from "./client";

export const secretsQuery = queryOptions({
  queryKey: ["secrets"],
  queryFn: () =>
    all((cursor) => take(api.GET("/v1/secrets", { params: { query: { limit: 500, cursor } } }))),
});

export const keepSecret = (id: string, value: string) =>
  take(api.PUT("/v1/secrets/{id}", { params: { path: { id } }, body: { value } }));

export const forgetSecret = (id: string) =>
  take(api.DELETE("/v1/secrets/{id}", { params: { path: { id } } }));
