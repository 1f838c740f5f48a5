// Three-way merge of two edits of one text.

import { diff3Merge } from "node-diff3";

export type MergeRegion =
  | { isMerged: true; lines: string[] }
  | { isMerged: false; base: string[]; mine: string[]; theirs: string[] };

export type MergeChoice = "mine" | "theirs" | "both" | { manualText: string };

export function mergeTexts(base: string, mine: string, theirs: string): MergeRegion[] {
  const regions = diff3Merge(mine.split("\n"), base.split("\n"), theirs.split("\n"), {
    excludeFalseConflicts: true,
  });
  return regions.map(({ ok, conflict }) =>
    conflict
      ? { isMerged: false, base: conflict.o, mine: conflict.a, theirs: conflict.b }
      : { isMerged: true, lines: ok ?? [] },
  );
}

/** The merged text, or null if there are conflicts. */
export function mergeWithoutConflict(base: string, mine: string, theirs: string): string | null {
  const regions = mergeTexts(base, mine, theirs);
  return regions.every((region) => region.isMerged) ? resolveMerge(regions, []) : null;
}

/** The text after applying one choice per conflict, in order; null while one is missing. */
export function resolveMerge(
  regions: MergeRegion[],
  choices: (MergeChoice | undefined)[],
): string | null {
  let conflictIndex = 0;
  const lines: string[] = [];
  for (const region of regions) {
    if (region.isMerged) {
      lines.push(...region.lines);
      continue;
    }
    const choice = choices[conflictIndex];
    conflictIndex += 1;
    if (!choice) return null;
    lines.push(...chosenLines(region, choice));
  }
  return lines.join("\n");
}

function chosenLines(
  region: Extract<MergeRegion, { isMerged: false }>,
  choice: MergeChoice,
): string[] {
  if (choice === "both") return [...region.mine, ...region.theirs];
  if (choice === "mine" || choice === "theirs") return region[choice];
  return choice.manualText === "" ? [] : choice.manualText.split("\n");
}
