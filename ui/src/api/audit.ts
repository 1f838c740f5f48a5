// Audit log of the tenant, newest first, filtered by the server.

import { infiniteQueryOptions } from "@tanstack/react-query";
import { startOfDay, startOfNextDay } from "../components/days";
import { api, type ResponseBody, unwrap } from "./client";

export type AuditEntry = ResponseBody<"/v1/audit">["items"][number];
export type AuditObject = AuditEntry["objects"][number];

export interface AuditFilters {
  who: string;
  action: string;
  object: string;
  from: string;
  to: string;
}

/** Query parameters of the filters that are set; days are whole days in UTC. */
export function auditParams({ from, to, ...texts }: AuditFilters): Record<string, string> {
  const params = {
    ...texts,
    from: from && startOfDay(from),
    to: to && startOfNextDay(to),
  };
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value));
}

export const auditQuery = (filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: ["audit", filters],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/v1/audit", {
          params: { query: { ...auditParams(filters), limit: 100, cursor: pageParam } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
  });

/** URL of the export of all entries that the filters select. */
export const auditExportUrl = (filters: AuditFilters, format: "csv" | "json") =>
  `/v1/audit/export?${new URLSearchParams({ ...auditParams(filters), format })}`;

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

/** Console URL of a record that an entry names; null if it has no screen. */
export const objectUrl = ({ type, id }: Pick<AuditObject, "type" | "id">): string | null =>
  SCREENS[type]?.(encodeURIComponent(id)) ?? null;

/** Console URL of a subject, `type/id`; null if it has no screen. */
export function subjectUrl(subject: string): string | null {
  const [type = "", id = ""] = subject.split(/\/(.*)/s);
  return objectUrl({ type, id });
}
