// Finds turns without an answer.

import type { Entry } from "../../api/transcripts";

export type TurnState = "failed" | "waiting";

interface SessionState {
  /** Whether the session is closed. */
  isClosed: boolean;
  /** In a shared session, consecutive user entries may belong to one turn. */
  isShared: boolean;
}

/** State of unanswered turns, by the number of the turn's last entry. */
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
