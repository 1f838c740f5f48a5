import { queryOptions } from "@tanstack/react-query";
import { api, type RequestBody, type ResponseBody, unwrap } from "./client";

export type Agent = Omit<ResponseBody<"/v1/agents/{id}">, "config"> & {
  config: Record<string, unknown>;
};
export type NewAgent = RequestBody<"/v1/agents", "post">;
type PatchBody = RequestBody<"/v1/agents/{id}", "patch">;
export type AgentPatch = Omit<PatchBody, "config"> & {
  config?: Record<string, unknown>;
};

/** An agent, by id or slug. */
export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: ["agent", id],
    queryFn: () =>
      unwrap(api.GET("/v1/agents/{id}", { params: { path: { id } } })) as Promise<Agent>,
  });

export const createAgent = (body: NewAgent) =>
  unwrap(api.POST("/v1/agents", { body })) as Promise<Agent>;

export const patchAgent = (id: string, patch: AgentPatch) =>
  unwrap(
    api.PATCH("/v1/agents/{id}", {
      params: { path: { id } },
      body: patch as PatchBody,
    }),
  ) as Promise<Agent>;

type ChangeBody = RequestBody<"/v1/agent-changes", "post">;
export type AgentChange = ChangeBody["change"];
export type AgentOutcomes = Awaited<ReturnType<typeof changeAgents>>;

/** Changes many agents, or with `dryRun` answers what that does. */
export const changeAgents = (body: ChangeBody) => unwrap(api.POST("/v1/agent-changes", { body }));

export const duplicateAgent = (id: string, body: { slug: string; name: string }) =>
  unwrap(api.POST("/v1/agents/{id}/duplicate", { params: { path: { id } }, body }));

export const deleteAgent = (id: string) =>
  unwrap(api.DELETE("/v1/agents/{id}", { params: { path: { id } } }));
