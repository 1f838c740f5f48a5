// Text matching that ignores case and accents.

const MARKS = /\p{M}/gu;

export const foldText = (text: string): string =>
  text.normalize("NFD").replace(MARKS, "").toLowerCase();

/** Folded words of a query. */
export const splitWords = (query: string): string[] => foldText(query).split(/\s+/).filter(Boolean);

export const includesAllWords = (text: string, words: readonly string[]): boolean =>
  words.every((word) => text.includes(word));
