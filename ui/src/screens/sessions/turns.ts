// Which turns came to nothing: somebody spoke, and no answer was kept.

import type { Entry } from "../../api/transcripts";

export type Unanswered = "failed" | "waiting";

/** By the number of the last thing that was said in the turn: whether it failed, or still waits. */
export function unansweredOf(entries: readonly Entry[], isOver: boolean): Map<number, Unanswered> {
  const found = new Map<number, Unanswered>();
  let asked = false;
  entries.forEach((entry, at) => {
    if (entry.role === "user") asked = true;
    if (entry.role === "assistant") asked = false;
    const next = entries[at + 1];
    const ends = next === undefined || (next.role === "user" && entry.role !== "user");
    if (!asked || !ends) return;
    if (next) found.set(entry.number, "failed");
    else found.set(entry.number, isOver ? "failed" : "waiting");
    asked = false;
  });
  return found;
}
