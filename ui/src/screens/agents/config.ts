// What of an agent's config has fields of its own, read with care: anything may stand there.

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
  /** Its own; null for none, which makes it read-only; absent for the agent's. */
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

/** A config with some keys said anew; what is empty goes. */
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

/** What was typed as JSON, or why it is no object of other keys. */
export function parseOtherConfig(text: string): { config: Config } | { error: string } {
  let value: unknown;
  try {
    value = JSON.parse(text || "{}");
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { error: "It has to be an object, in braces." };
  }
  const duplicate = FORM_KEYS.find((key) => key in value);
  if (duplicate) return { error: `${duplicate} has its own field above.` };
  return { config: value as Config };
}
