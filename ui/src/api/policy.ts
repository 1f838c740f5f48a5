// Policy of the tenant: file classes, limits, redaction and retention.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import { encodeHeader } from "./files";

export type Policy = Required<ResponseBody<"/v1/policy">>;
export type Rule = Policy["classes"][number];
export type FileClass = Rule["class"];
export type Limits = Required<Policy["limits"]>;

/** Rules that apply before the tenant's own and cannot be removed. */
export const FIXED_RULES: Rule[] = [
  { pattern: "GUARDRAILS.md", class: "pinned" },
  { pattern: "PLATFORM.md", class: "pinned" },
  { pattern: "CAPABILITIES.md", class: "pinned" },
  { pattern: "USER.md", class: "managed" },
];

export const policyQuery = queryOptions({
  queryKey: ["policy"],
  queryFn: () => unwrap(api.GET("/v1/policy")) as Promise<Policy>,
});

/** `confirm` pins files although their placeholders will no longer be filled. */
export const savePolicy = async (policy: Policy, reason: string, confirm: boolean) => {
  const { placeholderFiles: _, ...saved } = await unwrap(
    api.PUT("/v1/policy", {
      body: { ...policy, confirm },
      params: { header: reason ? { "Carrel-Reason": encodeHeader(reason) } : {} },
    }),
  );
  return saved as Policy;
};

export interface PolicyPreview {
  changes: { path: string; from: FileClass; to: FileClass; agents: number }[];
  /** Number of all changes; `changes` may be truncated. */
  count: number;
  loosens: boolean;
  /** Files whose placeholders would no longer be filled; saving needs a confirmation. */
  placeholderFiles: string[];
  rules: (Rule & { files: number })[];
}

/** Files that would change class, and whether the policy becomes looser. */
export const previewPolicy = (policy: Policy) =>
  unwrap(api.POST("/v1/policy/preview", { body: policy })) as Promise<PolicyPreview>;
