// Sandboxes: where agents run commands.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import type { operations } from "./rest.generated";

export const PROVIDERS = ["local", "docker", "lambda", "e2b", "daytona", "kubernetes"] as const;
export const RUNTIMES = ["bash", "python", "node"] as const;
export const MASK = "********";

export interface SandboxConfig {
  provider: (typeof PROVIDERS)[number];
  permissionMode: "ask" | "edit" | "bypass";
  internet?: boolean;
  network?: { mode: string };
  runtimes?: string[];
  timeout?: number;
  memoryLimit?: number;
  outputLimitBytes?: number;
  envVars?: Record<string, string>;
  persistent?: boolean;
  lifecycle?: { idleTimeoutSeconds?: number; maxLifetimeSeconds?: number };
  options?: Record<string, unknown>;
}

export type Sandbox = Omit<ResponseBody<"/accounts/me/sandboxes/{id}">, "config"> & {
  config: SandboxConfig;
};

/** A merge patch: null removes a value, MASK keeps a secret. */
export type MergePatch<Target> = { [Key in keyof Target]?: MergePatch<Target[Key]> | null };
export interface SandboxPatch {
  name?: string;
  description?: string | null;
  config?: MergePatch<SandboxConfig>;
}

type Operation = "sandboxes_create" | "sandboxes_patch";
type Body = NonNullable<operations[Operation]["requestBody"]>["content"]["application/json"];

export const sandboxesQuery = queryOptions({
  queryKey: ["sandboxes"],
  queryFn: async () => (await unwrap(api.GET("/accounts/me/sandboxes"))).sandboxes as Sandbox[],
});

export const sandboxQuery = (id: string) =>
  queryOptions({
    queryKey: ["sandboxes", id],
    queryFn: () =>
      unwrap(
        api.GET("/accounts/me/sandboxes/{id}", { params: { path: { id } } }),
      ) as Promise<Sandbox>,
  });

export const createSandbox = (body: SandboxPatch) =>
  unwrap(
    api.POST("/accounts/me/sandboxes", { body: body as Body & { name: string } }),
  ) as Promise<Sandbox>;

export const patchSandbox = (id: string, patch: SandboxPatch) =>
  unwrap(
    api.PATCH("/accounts/me/sandboxes/{id}", { params: { path: { id } }, body: patch as Body }),
  ) as Promise<Sandbox>;

export const deleteSandbox = (id: string) =>
  unwrap(api.DELETE("/accounts/me/sandboxes/{id}", { params: { path: { id } } }));

/** Isolation tier of the provider `local` on this server. */
export const isolationTierQuery = queryOptions({
  queryKey: ["readyz"],
  queryFn: async () => {
    const readiness = (await unwrap(api.GET("/readyz"))) as { sandbox?: { tier?: string } };
    return readiness.sandbox?.tier ?? "untested";
  },
  staleTime: 60_000,
});

export const hasNetworkAccess = ({ internet, network }: SandboxConfig) =>
  internet === true || network?.mode === "allow-all";
