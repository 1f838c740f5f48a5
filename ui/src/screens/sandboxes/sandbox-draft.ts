// What a form holds of a sandbox, and the merge-patch that follows from it.

import {
  MASK,
  type Merge,
  reachesNetwork,
  type Sandbox,
  type SandboxConfig,
  type SandboxPatch,
} from "../../api/sandboxes";

export interface Variable {
  id: number;
  name: string;
  value: string;
  /** A value is stored, which nobody can see; it stays unless another is typed. */
  kept: boolean;
}

export interface SandboxDraft {
  name: string;
  description: string;
  provider: SandboxConfig["provider"];
  permissionMode: SandboxConfig["permissionMode"];
  network: boolean;
  timeout: string;
  memoryLimit: string;
  outputLimitBytes: string;
  runtimes: string[];
  persistent: boolean;
  idleTimeoutSeconds: string;
  maxLifetimeSeconds: string;
  variables: Variable[];
  options: string;
}

const said = (number: number | undefined) => (number === undefined ? "" : String(number));

export function draftOf(sandbox?: Sandbox): SandboxDraft {
  const config: Partial<SandboxConfig> = sandbox?.config ?? {};
  return {
    name: sandbox?.name ?? "",
    description: sandbox?.description ?? "",
    provider: config.provider ?? "local",
    permissionMode: config.permissionMode ?? "ask",
    network: sandbox ? reachesNetwork(sandbox.config) : false,
    timeout: said(config.timeout),
    memoryLimit: said(config.memoryLimit),
    outputLimitBytes: said(config.outputLimitBytes),
    runtimes: config.runtimes ?? [],
    persistent: config.persistent ?? false,
    idleTimeoutSeconds: said(config.lifecycle?.idleTimeoutSeconds),
    maxLifetimeSeconds: said(config.lifecycle?.maxLifetimeSeconds),
    variables: Object.keys(config.envVars ?? {}).map((name, id) => ({
      id,
      name,
      value: "",
      kept: true,
    })),
    options: config.options ? JSON.stringify(config.options, null, 2) : "",
  };
}

const whole = (text: string) => (text.trim() ? Number(text) : null);

/** All that the form says; what is left empty is null, which takes it away. Throws for bad JSON. */
export function patchOf(draft: SandboxDraft, before?: Sandbox): SandboxPatch {
  const config: Merge<SandboxConfig> = {
    provider: draft.provider,
    permissionMode: draft.permissionMode,
    internet: draft.network || null,
    network: null,
    timeout: whole(draft.timeout),
    memoryLimit: whole(draft.memoryLimit),
    outputLimitBytes: whole(draft.outputLimitBytes),
    runtimes: draft.runtimes.length ? draft.runtimes : null,
    persistent: draft.persistent || null,
    lifecycle: lifecycleOf(draft),
    envVars: variablesOf(draft, before?.config.envVars ?? {}),
    options: optionsOf(draft.options, before?.config.options),
  };
  return {
    name: draft.name,
    description: draft.description.trim() || null,
    config: before ? config : (withoutNulls(config) as Merge<SandboxConfig>),
  };
}

function lifecycleOf(draft: SandboxDraft) {
  const { idleTimeoutSeconds, maxLifetimeSeconds, persistent } = draft;
  if (!persistent || !(idleTimeoutSeconds || maxLifetimeSeconds)) return null;
  return {
    idleTimeoutSeconds: whole(idleTimeoutSeconds),
    maxLifetimeSeconds: whole(maxLifetimeSeconds),
  };
}

function variablesOf({ variables }: SandboxDraft, before: Record<string, string>) {
  const given: Record<string, string | null> = {};
  for (const name of Object.keys(before)) given[name] = null;
  for (const { name, value, kept } of variables) given[name] = kept && !value ? MASK : value;
  return Object.keys(given).length ? given : null;
}

function optionsOf(text: string, before: Record<string, unknown> = {}) {
  if (!text.trim()) return null;
  const given: unknown = JSON.parse(text);
  if (typeof given !== "object" || !given || Array.isArray(given)) {
    throw new Error("Options must be a JSON object.");
  }
  const gone = Object.keys(before).filter((name) => !(name in given));
  return { ...given, ...Object.fromEntries(gone.map((name) => [name, null])) };
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const said = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(said.map(([name, inner]) => [name, withoutNulls(inner)]));
}
