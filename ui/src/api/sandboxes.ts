// Where commands of agents run, as the account describes it.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";
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

/** A merge-patch: null takes away, a mask leaves a secret as it is. */
export type Merge<Thing> = { [Key in keyof Thing]?: Merge<Thing[Key]> | null };
export interface SandboxPatch {
  name?: string;
  description?: string | null;
  config?: Merge<SandboxConfig>;
}

type Operation = "sandboxes_create" | "sandboxes_patch";
type Body = NonNullable<operations[Operation]["requestBody"]>["content"]["application/json"];

export const sandboxesQuery = queryOptions({
  queryKey: ["sandboxes"],
  queryFn: async () => (await take(api.GET("/accounts/me/sandboxes"))).sandboxes as Sandbox[],
});

export const sandboxQuery = (id: string) =>
  queryOptions({
    queryKey: ["sandboxes", id],
    queryFn: () =>
      take(
        api.GET("/accounts/me/sandboxes/{id}", { params: { path: { id } } }),
      ) as Promise<Sandbox>,
  });

export const createSandbox = (given: SandboxPatch) =>
  take(
    api.POST("/accounts/me/sandboxes", { body: given as Body & { name: string } }),
  ) as Promise<Sandbox>;

export const patchSandbox = (id: string, patch: SandboxPatch) =>
  take(
    api.PATCH("/accounts/me/sandboxes/{id}", { params: { path: { id } }, body: patch as Body }),
  ) as Promise<Sandbox>;

export const deleteSandbox = (id: string) =>
  take(api.DELETE("/accounts/me/sandboxes/{id}", { params: { path: { id } } }));

/** What keeps commands of the provider `local` apart on this server. */
export const tierQuery = queryOptions({
  queryKey: ["readyz"],
  queryFn: async () => {
    const ready = (await take(api.GET("/readyz"))) as { sandbox?: { tier?: string } };
    return ready.sandbox?.tier ?? "untested";
  },
  staleTime: 60_000,
});

export const reachesNetwork = ({ internet, network }: SandboxConfig) =>
  internet === true || network?.mode === "allow-all";
