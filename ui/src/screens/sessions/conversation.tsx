// What was said, in order: who speaks is told by side, name and sign.

import { MessageCircle } from "lucide-react";
import { useMemo } from "react";
import type { Entry, Transcript } from "../../api/transcripts";
import { Empty } from "../../components/query-states";
import { says } from "./highlight";
import { Utterance } from "./transcript-entry";
import { unansweredOf } from "./unanswered-turns";

interface ConversationProps {
  entries: readonly Entry[];
  session: Transcript;
  /** Whether all that was said is here. */
  isWhole: boolean;
  words: string;
  wanted: number | null;
}

export function Conversation({ entries, session, isWhole, words, wanted }: ConversationProps) {
  const isOver = session.endedAt !== null;
  const isShared = session.scope === "shared";
  const unanswered = useMemo(
    () => unansweredOf(entries, { isOver, isShared }),
    [entries, isOver, isShared],
  );
  const shown = words ? entries.filter(({ content }) => says(content, words)) : entries;
  if (entries.length === 0)
    return (
      <Empty icon={MessageCircle} title="Nothing has been said yet">
        <p>Each entry stands here as soon as the agent's runtime has kept it.</p>
      </Empty>
    );
  return (
    <>
      {words && (
        <p className="faint" role="status">
          {shown.length} of {entries.length} entries say that
          {isWhole ? "." : " so far: there are more entries."}
        </p>
      )}
      <ol className="transcript" aria-label="Transcript">
        {shown.map((entry) => (
          <Utterance
            key={entry.number}
            entry={entry}
            words={words}
            isWanted={entry.number === wanted}
            unanswered={
              isWhole || entry !== entries.at(-1) ? unanswered.get(entry.number) : undefined
            }
          />
        ))}
      </ol>
    </>
  );
}
