// Secrets that are redacted from every file; their values are write-only.

import { api, unwrap } from "./client";
import { PAGE_SIZE, pagesQuery } from "./pages";

export const secretsQuery = pagesQuery(["secrets"], (cursor) =>
  unwrap(api.GET("/v1/secrets", { params: { query: { limit: PAGE_SIZE, cursor } } })),
);

export const putSecret = (id: string, value: string) =>
  unwrap(api.PUT("/v1/secrets/{id}", { params: { path: { id } }, body: { value } }));

export const deleteSecret = (id: string) =>
  unwrap(api.DELETE("/v1/secrets/{id}", { params: { path: { id } } }));
