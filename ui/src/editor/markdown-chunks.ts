// Splits long Markdown into chunks that render independently, so that typing stays fast. Chunks
// start at block boundaries, never inside a fence, and keep their identity across edits.

export interface MarkdownChunk {
  id: number;
  text: string;
}

const TARGET_CHARS = 1_500;
const MAX_CHARS = 12_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^#{1,6}(\s|$)/;
const NEW_BLOCK = /^(?![\s>*+|-]|\d+[.)])./;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:\s*\S+.*$/gm;

let count = 0;
const createChunk = (text: string): MarkdownChunk => {
  count += 1;
  return { id: count, text };
};

/** Chunks for `texts`, reusing those of `reusable` with the same text. */
const reuseChunks = (texts: string[], reusable: readonly MarkdownChunk[]): MarkdownChunk[] => {
  const remaining = [...reusable];
  return texts.map((text) => {
    const index = remaining.findIndex((chunk) => chunk.text === text);
    return index < 0 ? createChunk(text) : (remaining.splice(index, 1)[0] as MarkdownChunk);
  });
};

/** Chunks in order; joined with line breaks they equal the text. */
export function splitMarkdown(
  text: string,
  previous: readonly MarkdownChunk[] = [],
): MarkdownChunk[] {
  const { start, end, head, tail } = findUnchanged(text, previous);
  const middle = split(text.slice(start, end));
  const keptTail = middle.closed ? tail : [];
  const { texts } = keptTail === tail ? middle : split(text.slice(start));
  const reusable = previous.slice(head.length, previous.length - keptTail.length);
  return [...head, ...reuseChunks(texts, reusable), ...keptTail];
}

/**
 * Unchanged chunks at the start and the end of the text, and the range between them.
 * The range includes the chunks next to an edit, since the edit may have merged them.
 */
function findUnchanged(text: string, previous: readonly MarkdownChunk[]) {
  let start = 0;
  let first = 0;
  for (; first < previous.length; first += 1) {
    const expected = `${previous[first]?.text}\n`;
    if (!text.startsWith(expected, start)) break;
    start += expected.length;
  }
  let end = text.length;
  let last = previous.length;
  for (; last > first; last -= 1) {
    const expected = `\n${previous[last - 1]?.text}`;
    const index = end - expected.length;
    if (index < start || !text.startsWith(expected, index)) break;
    end = index;
  }
  if (first > 0) {
    first -= 1;
    start -= (previous[first]?.text.length ?? 0) + 1;
  }
  if (last < previous.length) {
    end += (previous[last]?.text.length ?? 0) + 1;
    last += 1;
  }
  return { start, end, head: previous.slice(0, first), tail: previous.slice(last) };
}

function split(text: string): { texts: string[]; closed: boolean } {
  const texts: string[] = [];
  let lines: string[] = [];
  let size = 0;
  let fence: string | null = null;
  let afterBlank = true;
  for (const line of text.split("\n")) {
    const isBoundary =
      fence === null && (HEADING.test(line) || (afterBlank && NEW_BLOCK.test(line)));
    if ((isBoundary && size > TARGET_CHARS) || size > MAX_CHARS) {
      texts.push(lines.join("\n"));
      lines = [];
      size = 0;
    }
    lines.push(line);
    size += line.length + 1;
    fence = fenceAfter(fence, line);
    afterBlank = line.trim() === "";
  }
  texts.push(lines.join("\n"));
  return { texts, closed: fence === null };
}

function fenceAfter(open: string | null, line: string): string | null {
  const marker = FENCE.exec(line)?.[1];
  if (!marker) return open;
  if (open === null) return marker;
  const closes = marker.startsWith(open) && line.trim() === marker;
  return closes ? null : open;
}

/** Link definitions of the whole text, at most 200, which any chunk may use. */
export const linkDefinitions = (text: string): string =>
  (text.match(DEFINITION) ?? []).slice(0, 200).join("\n");

/** Whether a chunk is too long to render as Markdown; it is then shown as plain text. */
export const isTooLong = (chunk: string) => chunk.length > 2 * MAX_CHARS;
