// A long Markdown text in pieces that can be rendered one by one, so that no single one holds up
// the pen: cut where a block begins anew, never inside a fence.

const FULL = 3_000;
const OVERFULL = 12_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^#{1,6}(\s|$)/;
const FRESH = /^(?![\s>*+|-]|\d+[.)])./;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:\s*\S+.*$/gm;

/** The pieces in order; joined by line breaks they are the text again. */
export function pieces(text: string): string[] {
  if (text.length <= FULL) return [text];
  const made: string[] = [];
  let held: string[] = [];
  let size = 0;
  let fence: string | null = null;
  let afterBlank = true;
  for (const line of text.split("\n")) {
    const cut = fence === null && (HEADING.test(line) || (afterBlank && FRESH.test(line)));
    if ((cut && size > FULL) || size > OVERFULL) {
      made.push(held.join("\n"));
      held = [];
      size = 0;
    }
    held.push(line);
    size += line.length + 1;
    fence = fenceAfter(fence, line);
    afterBlank = line.trim() === "";
  }
  made.push(held.join("\n"));
  return made;
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
