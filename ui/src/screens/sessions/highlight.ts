// Highlights query words in a text, ignoring case and accents.

export interface TextPart {
  text: string;
  isHit: boolean;
}

const MARKS = /\p{M}/gu;
const foldText = (text: string) => text.normalize("NFD").replace(MARKS, "").toLowerCase();

/** The folded text, and for each of its units the index of the original character. */
function foldWithOrigins(text: string): { folded: string; origins: number[] } {
  let folded = "";
  const origins: number[] = [];
  let position = 0;
  for (const character of text) {
    const foldedCharacter = foldText(character);
    folded += foldedCharacter;
    for (let unit = 0; unit < foldedCharacter.length; unit += 1) origins.push(position);
    position += character.length;
  }
  origins.push(text.length);
  return { folded, origins };
}

/** Words of a query, longest first, so that the longest match is highlighted. */
export function splitQuery(query: string): string[] {
  const words = foldText(query).split(/\s+/).filter(Boolean);
  return [...new Set(words)].sort((a, b) => b.length - a.length);
}

/** Whether a text contains every word of a query. */
export function matchesQuery(text: string, query: string): boolean {
  const folded = foldText(text);
  return splitQuery(query).every((word) => folded.includes(word));
}

/** Splits a text into parts; parts that match the query are hits. */
export function highlightParts(text: string, query: string): TextPart[] {
  const words = splitQuery(query);
  if (words.length === 0) return [{ text, isHit: false }];
  const { folded, origins } = foldWithOrigins(text);
  const parts: TextPart[] = [];
  let consumed = 0;
  for (let position = 0; position < folded.length; ) {
    const word = words.find((candidate) => folded.startsWith(candidate, position));
    if (!word) {
      position += 1;
      continue;
    }
    const from = origins[position] ?? 0;
    const to = origins[position + word.length] ?? text.length;
    if (from > consumed) parts.push({ text: text.slice(consumed, from), isHit: false });
    if (to > consumed) parts.push({ text: text.slice(Math.max(from, consumed), to), isHit: true });
    consumed = Math.max(consumed, to);
    position += word.length;
  }
  if (consumed < text.length) parts.push({ text: text.slice(consumed), isHit: false });
  return parts;
}
