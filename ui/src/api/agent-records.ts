// Agent records, with the sandboxes and workspaces that their config refers to.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, type ResponseBody, unwrap } from "./client";

export interface Attachment {
  name: string;
  workspaceId: string;
  sandbox?: string | null;
}

interface Config {
  sandbox?: string | null;
  workspaces?: Attachment[] | null;
}

export type AgentRecord = Omit<ResponseBody<"/v1/agents/{id}">, "config"> & { config: Config };

export const agentRecordsQuery = queryOptions({
  queryKey: ["agent-records"],
  queryFn: async () => {
    const fetchPage = (cursor?: string) =>
      unwrap(api.GET("/v1/agents", { params: { query: { limit: 500, cursor } } }));
    return (await fetchAllPages(fetchPage)) as AgentRecord[];
  },
  staleTime: 30_000,
});

export const agentRecordQuery = (id: string) =>
  queryOptions({
    queryKey: ["agent", id],
    queryFn: () =>
      unwrap(api.GET("/v1/agents/{id}", { params: { path: { id } } })) as Promise<AgentRecord>,
  });

/** Person whose items a private agent shares; null means the caller's. */
export const itemOwnerOf = (agent: AgentRecord) => agent.ownerId ?? agent.humanPairId;

/** Whether a person owns the agent or is paired with it. */
export const isAgentOf = (agent: AgentRecord | undefined, person: string | undefined) =>
  Boolean(agent && person && (agent.ownerId === person || agent.humanPairId === person));

export interface AgentUse {
  agent: AgentRecord;
  detail: string;
}

/** Agents that run commands in a sandbox: by default, or in single workspaces. */
export function sandboxUses(agents: AgentRecord[], id: string): AgentUse[] {
  return agents.flatMap((agent) => {
    const { sandbox, workspaces } = agent.config;
    const names = (workspaces ?? [])
      .filter((attachment) => attachment.sandbox === id)
      .map(({ name }) => name);
    if (sandbox === id) return [{ agent, detail: "default sandbox" }];
    return names.length ? [{ agent, detail: `in ${names.join(", ")}` }] : [];
  });
}

/** Agents that have a workspace attached, with their access. */
export function workspaceUses(agents: AgentRecord[], id: string): AgentUse[] {
  return agents.flatMap((agent) =>
    (agent.config.workspaces ?? [])
      .filter((attachment) => attachment.workspaceId === id)
      .map((attachment) => ({
        agent,
        detail: `as ${attachment.name}, ${accessLabel(agent, attachment)}`,
      })),
  );
}

function accessLabel(agent: AgentRecord, { sandbox }: Attachment): string {
  const sandboxId = sandbox === undefined ? agent.config.sandbox : sandbox;
  return sandboxId ? "read, write and run commands" : "read-only";
}
