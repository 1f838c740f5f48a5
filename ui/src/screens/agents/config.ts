// What of an agent's config has fields of its own, read with care: anything may stand there.

type Config = Record<string, unknown>;

export const KNOWN = [
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

export const textIn = (config: Config, key: string): string => {
  const value = config[key];
  return typeof value === "string" ? value : "";
};

export const linesIn = (config: Config, key: string): string => {
  const value = config[key];
  return Array.isArray(value) ? value.join("\n") : "";
};

export const objectIn = (config: Config, key: string): Config => {
  const value = config[key];
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Config)
    : {};
};

export const attachedIn = (config: Config): Attachment[] => {
  const value = config["workspaces"];
  return Array.isArray(value) ? (value as Attachment[]) : [];
};

export const restOf = (config: Config): Config =>
  Object.fromEntries(Object.entries(config).filter(([key]) => !KNOWN.includes(key)));

export const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** A config with some keys said anew; what is empty goes. */
export function changed(config: Config, some: Config): Config {
  const isEmpty = (value: unknown) =>
    value === undefined ||
    value === null ||
    value === "" ||
    (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(
    Object.entries({ ...config, ...some }).filter(([, value]) => !isEmpty(value)),
  );
}

/** What was typed as JSON, or why it is no object of other keys. */
export function parsedRest(text: string): { rest: Config } | { wrong: string } {
  let value: unknown;
  try {
    value = JSON.parse(text || "{}");
  } catch (error) {
    return { wrong: `This is not JSON: ${(error as Error).message}` };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { wrong: "It has to be an object, in braces." };
  }
  const twice = KNOWN.find((key) => key in value);
  if (twice) return { wrong: `${twice} has its own field above.` };
  return { rest: value as Config };
}
