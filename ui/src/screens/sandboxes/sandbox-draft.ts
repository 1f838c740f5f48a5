// Form state of a sandbox, and the merge patch for it.

import {
  hasNetworkAccess,
  MASK,
  type MergePatch,
  type Sandbox,
  type SandboxConfig,
  type SandboxPatch,
} from "../../api/sandboxes";

export interface Variable {
  id: number;
  name: string;
  value: string;
  /** A value is stored; it stays unless a new one is typed. */
  isStored: boolean;
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

const numberText = (number: number | undefined) => (number === undefined ? "" : String(number));

export function draftFromSandbox(sandbox?: Sandbox): SandboxDraft {
  const config: Partial<SandboxConfig> = sandbox?.config ?? {};
  return {
    name: sandbox?.name ?? "",
    description: sandbox?.description ?? "",
    provider: config.provider ?? "local",
    permissionMode: config.permissionMode ?? "ask",
    network: sandbox ? hasNetworkAccess(sandbox.config) : false,
    timeout: numberText(config.timeout),
    memoryLimit: numberText(config.memoryLimit),
    outputLimitBytes: numberText(config.outputLimitBytes),
    runtimes: config.runtimes ?? [],
    persistent: config.persistent ?? false,
    idleTimeoutSeconds: numberText(config.lifecycle?.idleTimeoutSeconds),
    maxLifetimeSeconds: numberText(config.lifecycle?.maxLifetimeSeconds),
    variables: Object.keys(config.envVars ?? {}).map((name, id) => ({
      id,
      name,
      value: "",
      isStored: true,
    })),
    options: config.options ? JSON.stringify(config.options, null, 2) : "",
  };
}

const parseNumber = (text: string) => (text.trim() ? Number(text) : null);

/** Merge patch of the form; empty fields are null, which removes them. Throws on invalid JSON. */
export function patchFromDraft(draft: SandboxDraft, stored?: Sandbox): SandboxPatch {
  const config: MergePatch<SandboxConfig> = {
    provider: draft.provider,
    permissionMode: draft.permissionMode,
    internet: draft.network || null,
    network: null,
    timeout: parseNumber(draft.timeout),
    memoryLimit: parseNumber(draft.memoryLimit),
    outputLimitBytes: parseNumber(draft.outputLimitBytes),
    runtimes: draft.runtimes.length ? draft.runtimes : null,
    persistent: draft.persistent || null,
    lifecycle: lifecyclePatch(draft),
    envVars: variablesPatch(draft, stored?.config.envVars ?? {}),
    options: optionsPatch(draft.options, stored?.config.options),
  };
  return {
    name: draft.name,
    description: draft.description.trim() || null,
    config: stored ? config : (withoutNulls(config) as MergePatch<SandboxConfig>),
  };
}

function lifecyclePatch(draft: SandboxDraft) {
  const { idleTimeoutSeconds, maxLifetimeSeconds, persistent } = draft;
  if (!persistent || !(idleTimeoutSeconds || maxLifetimeSeconds)) return null;
  return {
    idleTimeoutSeconds: parseNumber(idleTimeoutSeconds),
    maxLifetimeSeconds: parseNumber(maxLifetimeSeconds),
  };
}

function variablesPatch({ variables }: SandboxDraft, stored: Record<string, string>) {
  const patch: Record<string, string | null> = {};
  for (const name of Object.keys(stored)) patch[name] = null;
  for (const { name, value, isStored } of variables)
    patch[name] = isStored && !value ? MASK : value;
  return Object.keys(patch).length ? patch : null;
}

function optionsPatch(text: string, stored: Record<string, unknown> = {}) {
  if (!text.trim()) return null;
  const options: unknown = JSON.parse(text);
  if (typeof options !== "object" || !options || Array.isArray(options)) {
    throw new Error("Options must be a JSON object.");
  }
  const removed = Object.keys(stored).filter((name) => !(name in options));
  return { ...options, ...Object.fromEntries(removed.map((name) => [name, null])) };
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(entries.map(([name, inner]) => [name, withoutNulls(inner)]));
}
