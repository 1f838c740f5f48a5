// One thing that was said.

import {
  AlertTriangle,
  Bot,
  Clock,
  type LucideIcon,
  Settings2,
  UserRound,
  Wrench,
} from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { Entry } from "../../api/transcripts";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { Time } from "../../components/time";
import { foldedAt } from "./collapse";
import { Marked } from "./highlighted-text";
import type { Unanswered } from "./unanswered-turns";

const ROLES: Record<Entry["role"], LucideIcon> = {
  user: UserRound,
  assistant: Bot,
  tool: Wrench,
  system: Settings2,
};

interface UtteranceProps {
  entry: Entry;
  words: string;
  isWanted: boolean;
  unanswered: Unanswered | undefined;
}

export function Utterance({ entry, words, isWanted, unanswered }: UtteranceProps) {
  const place = useRef<HTMLLIElement>(null);
  const Icon = ROLES[entry.role];
  useEffect(() => {
    if (isWanted) place.current?.scrollIntoView({ block: "center" });
  }, [isWanted]);
  return (
    <li
      ref={place}
      className={`utterance ${entry.role}${isWanted ? " wanted" : ""}`}
      aria-label={`${entry.role}, entry ${entry.number}`}
    >
      <div className="row wrap said-by">
        <Icon size={14} aria-hidden />
        <strong>{entry.role}</strong>
        {entry.senderId && <span className="bidi">{plain(entry.senderId, 60)}</span>}
        {entry.sourcePlugin && <span className="bidi">by {plain(entry.sourcePlugin, 40)}</span>}
        <span className="end">
          {entry.number} · <Time at={entry.timestamp} />
        </span>
      </div>
      <Content text={entry.content} words={words} isShort={entry.role === "tool"} />
      {unanswered && <NoAnswer why={unanswered} />}
    </li>
  );
}

/** Long ones are folded; a word that is looked for unfolds them. */
function Content({ text, words, isShort }: { text: string; words: string; isShort: boolean }) {
  const [open, setOpen] = useState(false);
  const cut = foldedAt(text, isShort ? 6 : 24);
  const isFolded = cut !== null && !open && !words;
  return (
    <>
      <div className="utterance-text bidi">
        <Marked text={isFolded ? `${text.slice(0, cut)}…` : text} words={words} />
      </div>
      {cut !== null && !words && (
        <Button small kind="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </Button>
      )}
    </>
  );
}

function NoAnswer({ why }: { why: Unanswered }) {
  const Icon = why === "failed" ? AlertTriangle : Clock;
  return (
    <p className={why === "failed" ? "no-answer bad" : "no-answer"}>
      <Icon size={14} aria-hidden />
      {why === "failed" ? "The turn failed: no answer was kept." : "No answer yet."}
    </p>
  );
}
