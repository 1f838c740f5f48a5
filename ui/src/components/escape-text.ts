// Escapes untrusted text for display in one line.

import { HIDDEN } from "./hidden-characters";

/** Replaces invisible and direction-changing characters by ␣ and truncates to `maxChars`. */
export function escapeText(text: string, maxChars = 200): string {
  const escaped = text.replace(HIDDEN, "\u2423");
  return escaped.length > maxChars ? `${escaped.slice(0, maxChars)}…` : escaped;
}
