import { highlightParts } from "./highlight";

/** A text in which the words of a question are marked. */
export function HighlightedText({ text, query }: { text: string; query: string }) {
  return highlightParts(text, query).map(({ text: part, isHit }, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never move
    isHit ? <mark key={index}>{part}</mark> : part,
  );
}
