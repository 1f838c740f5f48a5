// What the tenant has decided: which files are of which class, limits, redaction, retention.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";
import { header8 } from "./files";

export type Policy = Required<ResponseBody<"/v1/policy">>;
export type Rule = Policy["classes"][number];
export type FileClass = Rule["class"];
export type Limits = Required<Policy["limits"]>;

/** What no tenant can take away; it decides before any rule of the tenant's own. */
export const FLOOR: Rule[] = [
  { pattern: "GUARDRAILS.md", class: "pinned" },
  { pattern: "PLATFORM.md", class: "pinned" },
  { pattern: "CAPABILITIES.md", class: "pinned" },
  { pattern: "USER.md", class: "managed" },
];

export const policyQuery = queryOptions({
  queryKey: ["policy"],
  queryFn: () => take(api.GET("/v1/policy")) as Promise<Policy>,
});

export const savePolicy = (policy: Policy, reason: string) =>
  take(
    api.PUT("/v1/policy", {
      body: policy,
      params: { header: reason ? { "Carrel-Reason": header8(reason) } : {} },
    }),
  ) as Promise<Policy>;

export interface Preview {
  changes: { path: string; from: FileClass; to: FileClass; agents: number }[];
  /** Of all changes, where not every one is told. */
  count: number;
  loosens: boolean;
}

/** Which files would change class, and whether that lets go of what was reviewed. */
export const previewPolicy = (policy: Policy) =>
  take(api.POST("/v1/policy/preview", { body: policy })) as Promise<Preview>;
