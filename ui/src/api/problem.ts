/** What the server refused, as it said it; status 0 is a server that cannot be reached. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(status: number, body: unknown) {
    const said = (body ?? {}) as { error?: string; message?: string; details?: object };
    // Sandboxes and workspaces say what is wrong as `error`, the others have a code there.
    super(said.message ?? said.error ?? `The server answered ${status}.`);
    this.name = "Problem";
    this.status = status;
    this.code = said.error ?? "";
    this.details = (said.details ?? {}) as Record<string, unknown>;
  }
}

/** A sentence for people about anything that was thrown. */
export function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}
