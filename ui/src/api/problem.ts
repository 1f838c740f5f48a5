/** A refusal by the server; status 0 means that it could not be reached. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(status: number, body: unknown) {
    const fields = (body ?? {}) as { error?: string; message?: string; details?: object };
    // Sandbox and workspace endpoints put the message into `error`, the others a code.
    super(fields.message ?? fields.error ?? `The server responded with status ${status}.`);
    this.name = "Problem";
    this.status = status;
    this.code = fields.error ?? "";
    this.details = (fields.details ?? {}) as Record<string, unknown>;
  }
}

/** Message of an error, as a sentence. */
export function toSentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const capitalized = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}
