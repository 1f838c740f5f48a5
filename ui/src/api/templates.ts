// Templates, the packaged defaults, and what an edit of a shared file would do.

import { queryOptions } from "@tanstack/react-query";
import { all, api, type ResponseBody, take } from "./client";
import type { Place } from "./files";

export type Template = ResponseBody<"/v1/templates/{id}"> & { agentCount?: number };
export type Impact = ResponseBody<"/v1/templates/{id}/files/{path}/impact">;
export type DefaultsStatus = ResponseBody<"/v1/defaults">;

export const templatesQuery = queryOptions({
  queryKey: ["templates", "list"],
  queryFn: () =>
    all<Template>((cursor) =>
      take(api.GET("/v1/templates", { params: { query: { limit: 200, cursor } } })),
    ),
});

export const templateQuery = (id: string) =>
  queryOptions({
    queryKey: ["templates", "one", id],
    queryFn: () =>
      take(api.GET("/v1/templates/{id}", { params: { path: { id } } })) as Promise<Template>,
  });

export const createTemplate = (given: { slug: string; name: string }) =>
  take(api.POST("/v1/templates", { body: given }));

export const renameTemplate = (id: string, given: { slug?: string; name?: string }) =>
  take(api.PATCH("/v1/templates/{id}", { params: { path: { id } }, body: given }));

export const deleteTemplate = (id: string) =>
  take(api.DELETE("/v1/templates/{id}", { params: { path: { id } } }));

export const impactQuery = (place: Place, path: string) =>
  queryOptions({
    queryKey: ["impact", place.kind, place.id, path],
    enabled: place.kind === "template" || place.kind === "defaults",
    queryFn: () =>
      place.kind === "template"
        ? take(
            api.GET("/v1/templates/{id}/files/{path}/impact", {
              params: { path: { id: place.id, path } },
            }),
          )
        : take(api.GET("/v1/defaults/files/{path}/impact", { params: { path: { path } } })),
  });

export const defaultsQuery = queryOptions({
  queryKey: ["templates", "defaults"],
  queryFn: () => take(api.GET("/v1/defaults")),
});

export const updateDefaults = (given: { take?: string[]; keep?: string[] }) =>
  take(api.POST("/v1/defaults/update", { body: given }));
