// Collapses long texts.

const LINE_CHARS = 80;

/** Index after `lines` lines of at most LINE_CHARS characters; null if the text is short. */
export function collapseIndex(text: string, lines: number): number | null {
  const maxChars = lines * LINE_CHARS;
  let lineEnd = -1;
  for (let line = 0; line < lines; line += 1) {
    lineEnd = text.indexOf("\n", lineEnd + 1);
    if (lineEnd === -1) break;
  }
  const end = lineEnd === -1 ? text.length : lineEnd;
  const index = Math.min(end, maxChars);
  return index < text.length - LINE_CHARS ? index : null;
}
