// Entries of a session in order.

import { MessageCircle } from "lucide-react";
import { useMemo } from "react";
import type { Entry, Transcript } from "../../api/transcripts";
import { EmptyState } from "../../components/query-states";
import { matchesQuery } from "./highlight";
import { TranscriptEntry } from "./transcript-entry";
import { findUnansweredTurns } from "./unanswered-turns";

interface ConversationProps {
  entries: readonly Entry[];
  session: Transcript;
  /** Whether all entries are loaded. */
  isComplete: boolean;
  query: string;
  targetEntry: number | null;
}

export function Conversation({
  entries,
  session,
  isComplete,
  query,
  targetEntry,
}: ConversationProps) {
  const isClosed = session.endedAt !== null;
  const isShared = session.scope === "shared";
  const unanswered = useMemo(
    () => findUnansweredTurns(entries, { isClosed, isShared }),
    [entries, isClosed, isShared],
  );
  const visible = query ? entries.filter(({ content }) => matchesQuery(content, query)) : entries;
  if (entries.length === 0)
    return (
      <EmptyState icon={MessageCircle} title="No entries yet">
        <p>Entries appear here when the agent's runtime stores them.</p>
      </EmptyState>
    );
  return (
    <>
      {query && (
        <p className="faint" role="status">
          {visible.length} of {entries.length} {isComplete ? "entries" : "loaded entries"} match.
        </p>
      )}
      <ol className="transcript" aria-label="Transcript">
        {visible.map((entry) => (
          <TranscriptEntry
            key={entry.number}
            entry={entry}
            sessionId={session.id}
            query={query}
            isTarget={entry.number === targetEntry}
            unanswered={
              isComplete || entry !== entries.at(-1) ? unanswered.get(entry.number) : undefined
            }
          />
        ))}
      </ol>
    </>
  );
}
