import { partsOf } from "./highlight";

/** A text in which the words of a question are marked. */
export function Marked({ text, words }: { text: string; words: string }) {
  return partsOf(text, words).map(({ text: part, isHit }, at) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never move
    isHit ? <mark key={at}>{part}</mark> : part,
  );
}
