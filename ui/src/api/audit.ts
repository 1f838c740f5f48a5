// Audit log of the tenant's records, newest first.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type AuditEntry = ResponseBody<"/v1/audit">["items"][number];

export const auditQuery = infiniteQueryOptions({
  queryKey: ["audit"],
  queryFn: ({ pageParam }) =>
    unwrap(api.GET("/v1/audit", { params: { query: { limit: 200, cursor: pageParam } } })),
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

/** Console URL of an audit subject; null if it has no screen. */
export function subjectUrl(subject: string): string | null {
  const [type = "", id = ""] = subject.split(/\/(.*)/s);
  return SCREENS[type]?.(encodeURIComponent(id)) ?? null;
}
