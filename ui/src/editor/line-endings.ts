// The editor uses \n only; saving restores the file's own line endings.

/** The most frequent line ending of a text. */
export function detectLineEnding(text: string): "\n" | "\r\n" | "\r" {
  const crlf = text.split("\r\n").length - 1;
  const lf = text.split("\n").length - 1 - crlf;
  const cr = text.split("\r").length - 1 - crlf;
  if (crlf > lf && crlf >= cr) return "\r\n";
  return cr > lf ? "\r" : "\n";
}

export const normalizeLineEndings = (text: string) => text.replace(/\r\n?/g, "\n");

export const restoreLineEndings = (text: string, ending: string) =>
  ending === "\n" ? text : text.replaceAll("\n", ending);
