// Templates, the packaged defaults, and the impact of editing a shared file.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, type ResponseBody, unwrap } from "./client";
import type { FileScope } from "./files";
import { PAGE_SIZE, pagesQuery } from "./pages";

export type Template = ResponseBody<"/v1/templates/{id}"> & { agentCount?: number };
export type Impact = ResponseBody<"/v1/templates/{id}/files/{path}/impact">;
export type DefaultsStatus = ResponseBody<"/v1/defaults">;

export const templatesQuery = queryOptions({
  queryKey: ["templates", "list"],
  queryFn: () =>
    fetchAllPages<Template>((cursor) =>
      unwrap(api.GET("/v1/templates", { params: { query: { limit: 200, cursor } } })),
    ),
});

/** Templates whose name has these words. */
export const templatePagesQuery = (q: string) =>
  pagesQuery<Template>(["templates", "pages", q], (cursor) =>
    unwrap(
      api.GET("/v1/templates", {
        params: { query: { limit: PAGE_SIZE, cursor, ...(q && { q }) } },
      }),
    ),
  );

export const templateQuery = (id: string) =>
  queryOptions({
    queryKey: ["templates", "one", id],
    queryFn: () =>
      unwrap(api.GET("/v1/templates/{id}", { params: { path: { id } } })) as Promise<Template>,
  });

export const createTemplate = (body: { slug: string; name: string }) =>
  unwrap(api.POST("/v1/templates", { body }));

export const renameTemplate = (id: string, body: { slug?: string; name?: string }) =>
  unwrap(api.PATCH("/v1/templates/{id}", { params: { path: { id } }, body }));

export const duplicateTemplate = (id: string, body: { slug: string; name: string }) =>
  unwrap(api.POST("/v1/templates/{id}/duplicate", { params: { path: { id } }, body }));

export const deleteTemplate = (id: string) =>
  unwrap(api.DELETE("/v1/templates/{id}", { params: { path: { id } } }));

export const impactQuery = (scope: FileScope, path: string) =>
  queryOptions({
    queryKey: ["impact", scope.kind, scope.id, path],
    enabled: scope.kind === "template" || scope.kind === "defaults",
    queryFn: () =>
      scope.kind === "template"
        ? unwrap(
            api.GET("/v1/templates/{id}/files/{path}/impact", {
              params: { path: { id: scope.id, path } },
            }),
          )
        : unwrap(api.GET("/v1/defaults/files/{path}/impact", { params: { path: { path } } })),
  });

export const defaultsQuery = queryOptions({
  queryKey: ["templates", "defaults"],
  queryFn: () => unwrap(api.GET("/v1/defaults")),
});

export const updateDefaults = (body: { take?: string[]; keep?: string[] }) =>
  unwrap(api.POST("/v1/defaults/update", { body }));
