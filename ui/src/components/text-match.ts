// Texts as one looks for them: letter case and accents aside.

const MARKS = /\p{M}/gu;

export const folded = (text: string): string =>
  text.normalize("NFD").replace(MARKS, "").toLowerCase();

/** The words of what was typed, each of which is to be found. */
export const wordsOf = (typed: string): string[] => folded(typed).split(/\s+/).filter(Boolean);

export const hasAll = (text: string, words: readonly string[]): boolean =>
  words.every((word) => text.includes(word));
