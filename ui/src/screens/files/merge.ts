// Two drafts of one text, joined where they changed different lines.

import { diff3Merge } from "node-diff3";

export type Part =
  | { agreed: true; lines: string[] }
  | { agreed: false; base: string[]; mine: string[]; theirs: string[] };

export type Choice = "mine" | "theirs" | "both" | { byHand: string };

export function merged(base: string, mine: string, theirs: string): Part[] {
  const regions = diff3Merge(mine.split("\n"), base.split("\n"), theirs.split("\n"), {
    excludeFalseConflicts: true,
  });
  return regions.map(({ ok, conflict }) =>
    conflict
      ? { agreed: false, base: conflict.o, mine: conflict.a, theirs: conflict.b }
      : { agreed: true, lines: ok ?? [] },
  );
}

/** The one text where nothing is in conflict, else null. */
export function mergedText(base: string, mine: string, theirs: string): string | null {
  const parts = merged(base, mine, theirs);
  return parts.every((part) => part.agreed) ? chosenText(parts, []) : null;
}

/** The text that the choices make, one for each conflict in order; null while one is missing. */
export function chosenText(parts: Part[], choices: (Choice | undefined)[]): string | null {
  let at = 0;
  const lines: string[] = [];
  for (const part of parts) {
    if (part.agreed) {
      lines.push(...part.lines);
      continue;
    }
    const choice = choices[at];
    at += 1;
    if (!choice) return null;
    lines.push(...linesOf(part, choice));
  }
  return lines.join("\n");
}

function linesOf(part: Extract<Part, { agreed: false }>, choice: Choice): string[] {
  if (choice === "both") return [...part.mine, ...part.theirs];
  if (choice === "mine" || choice === "theirs") return part[choice];
  return choice.byHand === "" ? [] : choice.byHand.split("\n");
}
