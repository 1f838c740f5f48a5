// What was said, in order: who speaks is told by side, name and sign.

import { MessageCircle } from "lucide-react";
import { useMemo } from "react";
import type { Entry } from "../../api/transcripts";
import { Empty } from "../../parts/states";
import { Utterance } from "./utterance";
import { says } from "./highlight";
import { unansweredOf } from "./turns";

interface ConversationProps {
  entries: readonly Entry[];
  isOver: boolean;
  /** Whether all that was said is here. */
  isWhole: boolean;
  words: string;
  wanted: number | null;
}

export function Conversation({ entries, isOver, isWhole, words, wanted }: ConversationProps) {
  const unanswered = useMemo(() => unansweredOf(entries, isOver), [entries, isOver]);
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
            unanswered={isWhole || entry !== entries.at(-1) ? unanswered.get(entry.number) : undefined}
          />
        ))}
      </ol>
    </>
  );
}
