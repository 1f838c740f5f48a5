// Structured result of a tool call, as stored with an approval or a session entry.

export interface ChangedFile {
  path: string;
  version: number;
  change: string;
}

/** What is known of a call beside its text. */
export interface ToolOutcome {
  exitCode: number | null;
  timedOut: boolean;
  truncated: boolean;
  durationMs: number | null;
  outputFiles: string[];
  changed: ChangedFile[];
}

type Fields = Record<string, unknown>;

const asFields = (value: unknown): Fields | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;

/** Structured result of a reply, over REST or over MCP; null if it has none. */
export function structuredResult(reply: unknown): Fields | null {
  const fields = asFields(reply);
  return fields && (asFields(fields["structured"]) ?? asFields(fields["structuredContent"]));
}

export function toolOutcome(result: Fields): ToolOutcome {
  const written = asChangedFile({ ...result, change: "written" });
  const changed = asList(result["changed"]).map(asChangedFile);
  return {
    exitCode: asNumber(result["exitCode"]),
    timedOut: result["timedOut"] === true,
    truncated: result["truncated"] === true,
    durationMs: asNumber(result["durationMs"]),
    outputFiles: asList(result["outputFiles"]).filter((path) => typeof path === "string"),
    changed: [...changed, "redacted" in result ? written : null].filter((file) => file !== null),
  };
}

const asNumber = (value: unknown) => (typeof value === "number" ? value : null);

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function asChangedFile(value: unknown): ChangedFile | null {
  const { path, version, change } = asFields(value) ?? {};
  if (typeof path !== "string" || typeof version !== "number") return null;
  return { path, version, change: typeof change === "string" ? change : "changed" };
}
