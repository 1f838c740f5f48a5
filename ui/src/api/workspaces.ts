// Workspaces that agents share, as records; their files are those of a place.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

interface WorkspaceConfig {
  storage?: { provider: string };
  harness?: { enabled?: boolean };
}

export type WorkspaceRecord = Omit<ResponseBody<"/accounts/me/workspaces/{id}">, "config"> & {
  config: WorkspaceConfig;
};

export interface WorkspaceGiven {
  name: string;
  description: string | null;
  config: { harness: { enabled: boolean } };
}

export const workspacesQuery = queryOptions({
  queryKey: ["workspaces"],
  queryFn: async () =>
    (await take(api.GET("/accounts/me/workspaces"))).workspaces as WorkspaceRecord[],
});

export const workspaceQuery = (id: string) =>
  queryOptions({
    queryKey: ["workspaces", id],
    queryFn: () =>
      take(
        api.GET("/accounts/me/workspaces/{id}", { params: { path: { id } } }),
      ) as Promise<WorkspaceRecord>,
  });

export const createWorkspace = (body: WorkspaceGiven) =>
  take(api.POST("/accounts/me/workspaces", { body })) as Promise<WorkspaceRecord>;

export const patchWorkspace = (id: string, body: WorkspaceGiven) =>
  take(
    api.PATCH("/accounts/me/workspaces/{id}", { params: { path: { id } }, body }),
  ) as Promise<WorkspaceRecord>;

export const deleteWorkspace = (id: string) =>
  take(api.DELETE("/accounts/me/workspaces/{id}", { params: { path: { id } } }));

/** Whether prompts tell agents how to use it; they do unless it says otherwise. */
export const isExplained = ({ config }: WorkspaceRecord) => config.harness?.enabled !== false;
