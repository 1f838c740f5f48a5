// A prompt taken apart again: which part of its text stands for which block.

import type { Block } from "../../api/prompt";

export interface BlockText {
  block: Block;
  text: string;
}

const SEPARATOR_CHARS = 2;

/** The blocks that stand in the text, each with its part of it. Lengths count characters, not UTF-16. */
export function splitPrompt(text: string, blocks: readonly Block[]): BlockText[] {
  const characters = Array.from(text);
  const texts: BlockText[] = [];
  let position = 0;
  for (const block of blocks) {
    if (block.kept === "left out" || block.chars === 0) continue;
    texts.push({ block, text: characters.slice(position, position + block.chars).join("") });
    position += block.chars + SEPARATOR_CHARS;
  }
  return texts;
}

/** One block is told from another by where it stands: a name may come twice. */
export const blockKey = ({ name, path }: Block) => `${name}\n${path}`;
