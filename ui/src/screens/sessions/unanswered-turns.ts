// Which turns came to nothing: somebody spoke, and no answer was kept.

import type { Entry } from "../../api/transcripts";

export type Unanswered = "failed" | "waiting";

interface Talk {
  /** Whether nothing more can be said. */
  isOver: boolean;
  /** Whether several speak: then one after another does not mean that the first had no answer. */
  isShared: boolean;
}

/** By the number of the last thing that was said in the turn: whether it failed, or still waits. */
export function unansweredOf(entries: readonly Entry[], talk: Talk): Map<number, Unanswered> {
  const found = new Map<number, Unanswered>();
  let asked = false;
  entries.forEach((entry, at) => {
    if (entry.role === "user") asked = true;
    if (entry.role === "assistant") asked = false;
    const next = entries[at + 1];
    const speaksOn = talk.isShared && entry.role === "user";
    const ends = next === undefined || (next.role === "user" && !speaksOn);
    if (!asked || !ends) return;
    found.set(entry.number, next || talk.isOver ? "failed" : "waiting");
    asked = false;
  });
  return found;
}
