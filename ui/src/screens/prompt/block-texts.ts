// A prompt taken apart again: which part of its text stands for which block.

import type { Block } from "../../api/prompt";

export interface Piece {
  block: Block;
  text: string;
}

const GAP = 2;

/** The blocks that stand in the text, each with its part of it. Lengths count characters, not UTF-16. */
export function piecesOf(text: string, blocks: readonly Block[]): Piece[] {
  const characters = Array.from(text);
  const pieces: Piece[] = [];
  let at = 0;
  for (const block of blocks) {
    if (block.kept === "left out" || block.chars === 0) continue;
    pieces.push({ block, text: characters.slice(at, at + block.chars).join("") });
    at += block.chars + GAP;
  }
  return pieces;
}

/** One block is told from another by where it stands: a name may come twice. */
export const keyOf = ({ name, path }: Block) => `${name}\n${path}`;
