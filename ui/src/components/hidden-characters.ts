// Splits a text into what is read and what hides in it, so that both can be seen.

// Controls, formats, ignorable ones, and every space but the common one.
const HIDDEN = /(?! )[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Z}]/gu;
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
