// A long Markdown text in pieces that can be rendered one by one, so that no single one holds up
// the pen: cut where a block begins anew, never inside a fence. What an edit leaves as it was stays
// the same pieces.

export interface Piece {
  id: number;
  text: string;
}

const FULL = 1_500;
const OVERFULL = 12_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^#{1,6}(\s|$)/;
const FRESH = /^(?![\s>*+|-]|\d+[.)])./;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:\s*\S+.*$/gm;

let count = 0;
const named = (text: string): Piece => {
  count += 1;
  return { id: count, text };
};

/** New pieces, but for those that were there before. */
const renamed = (texts: string[], spare: readonly Piece[]): Piece[] => {
  const left = [...spare];
  return texts.map((text) => {
    const at = left.findIndex((piece) => piece.text === text);
    return at < 0 ? named(text) : (left.splice(at, 1)[0] as Piece);
  });
};

/** The pieces in order; joined by line breaks they are the text again. */
export function pieces(text: string, before: readonly Piece[] = []): Piece[] {
  const { start, end, head, tail } = untouched(text, before);
  const middle = split(text.slice(start, end));
  const kept = middle.closed ? tail : [];
  const { texts } = kept === tail ? middle : split(text.slice(start));
  const spare = before.slice(head.length, before.length - kept.length);
  return [...head, ...renamed(texts, spare), ...kept];
}

/**
 * Which pieces the text still begins and ends with, and where what lies between begins and ends.
 * The neighbours of an edit lie between too: it may have joined them to what it changed.
 */
function untouched(text: string, before: readonly Piece[]) {
  let start = 0;
  let first = 0;
  for (; first < before.length; first += 1) {
    const whole = `${before[first]?.text}\n`;
    if (!text.startsWith(whole, start)) break;
    start += whole.length;
  }
  let end = text.length;
  let last = before.length;
  for (; last > first; last -= 1) {
    const whole = `\n${before[last - 1]?.text}`;
    const at = end - whole.length;
    if (at < start || !text.startsWith(whole, at)) break;
    end = at;
  }
  if (first > 0) {
    first -= 1;
    start -= (before[first]?.text.length ?? 0) + 1;
  }
  if (last < before.length) {
    end += (before[last]?.text.length ?? 0) + 1;
    last += 1;
  }
  return { start, end, head: before.slice(0, first), tail: before.slice(last) };
}

function split(text: string): { texts: string[]; closed: boolean } {
  const texts: string[] = [];
  let held: string[] = [];
  let size = 0;
  let fence: string | null = null;
  let afterBlank = true;
  for (const line of text.split("\n")) {
    const cut = fence === null && (HEADING.test(line) || (afterBlank && FRESH.test(line)));
    if ((cut && size > FULL) || size > OVERFULL) {
      texts.push(held.join("\n"));
      held = [];
      size = 0;
    }
    held.push(line);
    size += line.length + 1;
    fence = fenceAfter(fence, line);
    afterBlank = line.trim() === "";
  }
  texts.push(held.join("\n"));
  return { texts, closed: fence === null };
}

function fenceAfter(open: string | null, line: string): string | null {
  const mark = FENCE.exec(line)?.[1];
  if (!mark) return open;
  if (open === null) return mark;
  const closes = mark.startsWith(open) && line.trim() === mark;
  return closes ? null : open;
}

/** Links that are defined anywhere in the text, which every piece of it may name. */
export const definitions = (text: string): string =>
  (text.match(DEFINITION) ?? []).slice(0, 200).join("\n");

/** Too long to be made into elements in one go: shown as it stands. */
export const isOverfull = (piece: string) => piece.length > 2 * OVERFULL;
