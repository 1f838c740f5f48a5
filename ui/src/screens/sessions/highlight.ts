// Where words stand in a text, letter case and accents aside.

export interface Part {
  text: string;
  isHit: boolean;
}

const MARKS = /\p{M}/gu;
const fold = (text: string) => text.normalize("NFD").replace(MARKS, "").toLowerCase();

/** The text folded, and for every unit of it the place of the character that it came from. */
function folded(text: string): { flat: string; origin: number[] } {
  let flat = "";
  const origin: number[] = [];
  let at = 0;
  for (const character of text) {
    const plain = fold(character);
    flat += plain;
    for (let unit = 0; unit < plain.length; unit += 1) origin.push(at);
    at += character.length;
  }
  origin.push(text.length);
  return { flat, origin };
}

/** The words of a question, longest first, so that the longest is marked where several fit. */
export function wordsOf(question: string): string[] {
  const words = fold(question).split(/\s+/).filter(Boolean);
  return [...new Set(words)].sort((one, other) => other.length - one.length);
}

/** Whether every word of a question stands in a text. */
export function says(text: string, question: string): boolean {
  const flat = fold(text);
  return wordsOf(question).every((word) => flat.includes(word));
}

/** The text in parts, those that a question names marked as hits. */
export function partsOf(text: string, question: string): Part[] {
  const words = wordsOf(question);
  if (words.length === 0) return [{ text, isHit: false }];
  const { flat, origin } = folded(text);
  const parts: Part[] = [];
  let done = 0;
  for (let at = 0; at < flat.length; ) {
    const word = words.find((each) => flat.startsWith(each, at));
    if (!word) {
      at += 1;
      continue;
    }
    const from = origin[at] ?? 0;
    const to = origin[at + word.length] ?? text.length;
    if (from > done) parts.push({ text: text.slice(done, from), isHit: false });
    if (to > done) parts.push({ text: text.slice(Math.max(from, done), to), isHit: true });
    done = Math.max(done, to);
    at += word.length;
  }
  if (done < text.length) parts.push({ text: text.slice(done), isHit: false });
  return parts;
}
