// Splits a text into visible segments and hidden characters.

// Control, format, unassigned and ignorable characters, blanks, and every space except U+0020;
// not the selector that makes a symbol an emoji.
export const HIDDEN =
  /(?! )(?!(?<=\p{Extended_Pictographic})\ufe0f)[\p{C}\p{Default_Ignorable_Code_Point}\p{Z}\u2800\u{1d159}]/gu;
const SYMBOLS: Record<string, string> = { "\t": "→", "\r": "␍" };

export interface TextSegment {
  text: string;
  hidden: boolean;
}

const codeOf = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Segments of a text; a hidden one contains a symbol or the code point. */
export function splitHiddenCharacters(text: string): TextSegment[] {
  const segments: TextSegment[] = [];
  let position = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > position)
      segments.push({ text: text.slice(position, match.index), hidden: false });
    segments.push({ text: SYMBOLS[match[0]] ?? codeOf(match[0]), hidden: true });
    position = match.index + match[0].length;
  }
  if (position < text.length) segments.push({ text: text.slice(position), hidden: false });
  return segments;
}
