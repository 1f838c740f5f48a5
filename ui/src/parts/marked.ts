// Splits a text into what is read and what hides in it, so that both can be seen.

const HIDDEN =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
const KNOWN: Record<string, string> = { "\t": "→", "\r": "␍" };

export interface Piece {
  text: string;
  hidden: boolean;
}

const codeOf = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** The same text in pieces: a hidden one tells the code of what stands there. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > at) pieces.push({ text: text.slice(at, found.index), hidden: false });
    pieces.push({ text: KNOWN[found[0]] ?? codeOf(found[0]), hidden: true });
    at = found.index + found[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), hidden: false });
  return pieces;
}
