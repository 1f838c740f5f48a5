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

export const deleteAgent = (id: string) =>
  unwrap(api.DELETE("/v1/agents/{id}", { params: { path: { id } } }));
