// Secrets that are redacted from every file; their values are write-only.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, unwrap } from "./client";

export const secretsQuery = queryOptions({
  queryKey: ["secrets"],
  queryFn: () =>
    fetchAllPages((cursor) =>
      unwrap(api.GET("/v1/secrets", { params: { query: { limit: 500, cursor } } })),
    ),
});

export const putSecret = (id: string, value: string) =>
  unwrap(api.PUT("/v1/secrets/{id}", { params: { path: { id } }, body: { value } }));

export const deleteSecret = (id: string) =>
  unwrap(api.DELETE("/v1/secrets/{id}", { params: { path: { id } } }));
