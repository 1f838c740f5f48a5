// Agents as records: what their config says of sandboxes and workspaces, and whose they are.

import { queryOptions } from "@tanstack/react-query";
import { all, api, type ResponseBody, take } from "./client";

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
    const page = (cursor?: string) =>
      take(api.GET("/v1/agents", { params: { query: { limit: 500, cursor } } }));
    return (await all(page)) as AgentRecord[];
  },
  staleTime: 30_000,
});

export const agentRecordQuery = (id: string) =>
  queryOptions({
    queryKey: ["agent", id],
    queryFn: () =>
      take(api.GET("/v1/agents/{id}", { params: { path: { id } } })) as Promise<AgentRecord>,
  });

/** Whose items a private agent shares; null where that is whoever asks. */
export const personOf = (agent: AgentRecord) => agent.ownerId ?? agent.humanPairId;

export interface Use {
  agent: AgentRecord;
  how: string;
}

/** The agents whose commands run in a sandbox: everywhere, or in some of their workspaces. */
export function usersOfSandbox(agents: AgentRecord[], id: string): Use[] {
  return agents.flatMap((agent) => {
    const { sandbox, workspaces } = agent.config;
    const there = (workspaces ?? []).filter((each) => each.sandbox === id).map(({ name }) => name);
    if (sandbox === id) return [{ agent, how: "everywhere, unless a workspace says otherwise" }];
    return there.length ? [{ agent, how: `in ${there.join(", ")}` }] : [];
  });
}

/** The agents to which a workspace is attached, and what they may do in it. */
export function usersOfWorkspace(agents: AgentRecord[], id: string): Use[] {
  return agents.flatMap((agent) =>
    (agent.config.workspaces ?? [])
      .filter((each) => each.workspaceId === id)
      .map((each) => ({ agent, how: `as ${each.name}, ${reach(agent, each)}` })),
  );
}

function reach(agent: AgentRecord, { sandbox }: Attachment): string {
  const usual = sandbox === undefined ? agent.config.sandbox : sandbox;
  return usual ? "to read, write and run commands" : "read-only";
}
