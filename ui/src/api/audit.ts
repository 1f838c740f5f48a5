// Who did what to the tenant's records, newest first.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

export type Deed = ResponseBody<"/v1/audit">["items"][number];

export const auditQuery = infiniteQueryOptions({
  queryKey: ["audit"],
  queryFn: ({ pageParam }) =>
    take(api.GET("/v1/audit", { params: { query: { limit: 200, cursor: pageParam } } })),
  initialPageParam: "",
  getNextPageParam: ({ next }) => next,
});

const SCREENS: Record<string, (id: string) => string> = {
  agent: (id) => `/agents/${id}`,
  template: (id) => `/agent-templates/${id}`,
  defaults: () => "/agent-templates/defaults",
  person: () => "/settings/people",
  key: () => "/settings/keys",
  policy: () => "/settings/policy",
  secret: () => "/settings/secrets",
  webhook: (id) => `/settings/webhooks/${id}`,
  sandbox: (id) => `/sandboxes/${id}`,
  workspace: (id) => `/workspaces/${id}`,
  approval: (id) => `/approvals/${id}`,
};

/** Where the desk shows what a deed was about, if it does. */
export function addressOfSubject(subject: string): string | null {
  const [noun = "", id = ""] = subject.split(/\/(.*)/s);
  return SCREENS[noun]?.(encodeURIComponent(id)) ?? null;
}
