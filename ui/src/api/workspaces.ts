// Records of shared workspaces; their files are in files.ts.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

interface WorkspaceConfig {
  storage?: { provider: string };
  harness?: { enabled?: boolean };
}

export type WorkspaceRecord = Omit<ResponseBody<"/accounts/me/workspaces/{id}">, "config"> & {
  config: WorkspaceConfig;
};

export interface WorkspaceBody {
  name: string;
  description: string | null;
  config: { harness: { enabled: boolean } };
}

export const workspacesQuery = queryOptions({
  queryKey: ["workspaces"],
  queryFn: async () =>
    (await unwrap(api.GET("/accounts/me/workspaces"))).workspaces as WorkspaceRecord[],
});

export const workspaceQuery = (id: string) =>
  queryOptions({
    queryKey: ["workspaces", id],
    queryFn: () =>
      unwrap(
        api.GET("/accounts/me/workspaces/{id}", { params: { path: { id } } }),
      ) as Promise<WorkspaceRecord>,
  });

export const createWorkspace = (body: WorkspaceBody) =>
  unwrap(api.POST("/accounts/me/workspaces", { body })) as Promise<WorkspaceRecord>;

export const patchWorkspace = (id: string, body: WorkspaceBody) =>
  unwrap(
    api.PATCH("/accounts/me/workspaces/{id}", { params: { path: { id } }, body }),
  ) as Promise<WorkspaceRecord>;

export const deleteWorkspace = (id: string) =>
  unwrap(api.DELETE("/accounts/me/workspaces/{id}", { params: { path: { id } } }));

/** Whether prompts contain the workspace notes (wire field `harness`); on by default. */
export const hasWorkspaceNotes = ({ config }: WorkspaceRecord) => config.harness?.enabled !== false;
