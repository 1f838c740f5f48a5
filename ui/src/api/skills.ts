// Skills: the folders `skills/<name>` among the files of agents and templates.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import type { FileScope } from "./files";

export type Skill = ResponseBody<"/v1/agents/{id}/skills">["items"][number];

const PATHS = {
  agent: "/v1/agents/{id}/skills",
  template: "/v1/templates/{id}/skills",
  workspace: "/v1/workspaces/{id}/skills",
  defaults: "/v1/defaults/skills",
} as const;

/** Stale when files change, as the key tells. */
export const skillsQuery = (scope: FileScope) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "skills"],
    queryFn: async () => {
      // The four paths have the same types; they are those of the agents' path.
      const path = PATHS[scope.kind] as (typeof PATHS)["agent"];
      return (await unwrap(api.GET(path, { params: { path: { id: scope.id } } }))).items;
    },
  });
