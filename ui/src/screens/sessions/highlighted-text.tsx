import { highlightParts } from "./highlight";

/** A text with the query's words highlighted. */
export function HighlightedText({ text, query }: { text: string; query: string }) {
  return highlightParts(text, query).map(({ text: part, isHit }, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts are never reordered
    isHit ? <mark key={index}>{part}</mark> : part,
  );
}
