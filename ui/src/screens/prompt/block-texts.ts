// Splits a prompt's text into its blocks.

import type { Block } from "../../api/prompt";

export interface BlockText {
  block: Block;
  text: string;
}

const SEPARATOR_CHARS = 2;

/** Blocks of the text, each with its part. Lengths are code points, not UTF-16 units. */
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

/** Key of a block; names are not unique. */
export const blockKey = ({ name, path }: Block) => `${name}\n${path}`;
