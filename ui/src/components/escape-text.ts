// Escapes untrusted text for display in one line.

const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** Replaces invisible and direction-changing characters by ␣ and truncates to `maxChars`. */
export function escapeText(text: string, maxChars = 200): string {
  const escaped = text.replace(INVISIBLE, "\u2423");
  return escaped.length > maxChars ? `${escaped.slice(0, maxChars)}…` : escaped;
}
