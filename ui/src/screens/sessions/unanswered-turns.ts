// Which turns came to nothing: somebody spoke, and no answer was kept.

import type { Entry } from "../../api/transcripts";

export type TurnState = "failed" | "waiting";

interface SessionState {
  /** Whether nothing more can be said. */
  isClosed: boolean;
  /** Whether several speak: then one after another does not mean that the first had no answer. */
  isShared: boolean;
}

/** By the number of the last thing that was said in the turn: whether it failed, or still waits. */
export function findUnansweredTurns(
  entries: readonly Entry[],
  session: SessionState,
): Map<number, TurnState> {
  const turns = new Map<number, TurnState>();
  let isOpen = false;
  entries.forEach((entry, index) => {
    if (entry.role === "user") isOpen = true;
    if (entry.role === "assistant") isOpen = false;
    const next = entries[index + 1];
    const mayContinue = session.isShared && entry.role === "user";
    const isTurnEnd = next === undefined || (next.role === "user" && !mayContinue);
    if (!isOpen || !isTurnEnd) return;
    turns.set(entry.number, next || session.isClosed ? "failed" : "waiting");
    isOpen = false;
  });
  return turns;
}
