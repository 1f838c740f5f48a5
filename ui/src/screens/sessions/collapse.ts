// Where a long text is cut until somebody wants all of it.

const WIDTH = 80;

/** The place after so many lines, or so many times the usual width; null where it is short enough. */
export function foldedAt(text: string, lines: number): number | null {
  const most = lines * WIDTH;
  let at = -1;
  for (let line = 0; line < lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at === -1) break;
  }
  const end = at === -1 ? text.length : at;
  const cut = Math.min(end, most);
  return cut < text.length - WIDTH ? cut : null;
}
