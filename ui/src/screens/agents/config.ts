// Typed access to an agent's config, which may contain any JSON.

type Config = Record<string, unknown>;

export const FORM_KEYS = [
  "timezone",
  "model",
  "allowedTools",
  "allowedDelegates",
  "extraDocs",
  "sandbox",
  "workspaces",
  "dreaming",
  "workspaceGit",
];

export interface Attachment {
  name: string;
  workspaceId: string;
  /** Absent: the agent's sandbox. Null: no sandbox, read-only. */
  sandbox?: string | null;
}

export const configText = (config: Config, key: string): string => {
  const value = config[key];
  return typeof value === "string" ? value : "";
};

export const configLines = (config: Config, key: string): string => {
  const value = config[key];
  return Array.isArray(value) ? value.join("\n") : "";
};

export const configObject = (config: Config, key: string): Config => {
  const value = config[key];
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Config)
    : {};
};

export const configAttachments = (config: Config): Attachment[] => {
  const value = config["workspaces"];
  return Array.isArray(value) ? (value as Attachment[]) : [];
};

export const otherConfig = (config: Config): Config =>
  Object.fromEntries(Object.entries(config).filter(([key]) => !FORM_KEYS.includes(key)));

export const splitLines = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** Merges `patch` into a config and drops empty values. */
export function mergeConfig(config: Config, patch: Config): Config {
  const isEmpty = (value: unknown) =>
    value === undefined ||
    value === null ||
    value === "" ||
    (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(
    Object.entries({ ...config, ...patch }).filter(([, value]) => !isEmpty(value)),
  );
}

/** Parses the JSON field; an error if it is no object or has a key with a form field. */
export function parseOtherConfig(text: string): { config: Config } | { error: string } {
  let value: unknown;
  try {
    value = JSON.parse(text || "{}");
  } catch (error) {
    return { error: `Invalid JSON: ${(error as Error).message}` };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { error: "Must be a JSON object." };
  }
  const duplicate = FORM_KEYS.find((key) => key in value);
  if (duplicate) return { error: `${duplicate} has its own field above` };
  return { config: value as Config };
}
