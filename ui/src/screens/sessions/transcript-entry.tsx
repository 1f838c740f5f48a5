// One entry of a transcript.

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
import { Link } from "react-router";
import type { Entry } from "../../api/transcripts";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { ToolResult } from "../../components/tool-result";
import { collapseIndex } from "./collapse";
import { HighlightedText } from "./highlighted-text";
import type { TurnState } from "./unanswered-turns";

const ROLE_ICONS: Record<Entry["role"], LucideIcon> = {
  user: UserRound,
  assistant: Bot,
  tool: Wrench,
  system: Settings2,
};

interface TranscriptEntryProps {
  entry: Entry;
  sessionId: string;
  query: string;
  isTarget: boolean;
  unanswered: TurnState | undefined;
}

export function TranscriptEntry({
  entry,
  sessionId,
  query,
  isTarget,
  unanswered,
}: TranscriptEntryProps) {
  const element = useRef<HTMLLIElement>(null);
  const Icon = ROLE_ICONS[entry.role];
  useEffect(() => {
    if (isTarget) element.current?.scrollIntoView({ block: "center" });
  }, [isTarget]);
  return (
    <li
      ref={element}
      className={`entry ${entry.role}${isTarget ? " target" : ""}`}
      aria-label={`${entry.role}, entry ${entry.number}`}
    >
      <div className="row wrap entry-meta">
        <Icon size={14} aria-hidden />
        <strong>{entry.role}</strong>
        {entry.senderId && <span className="bidi">{escapeText(entry.senderId, 60)}</span>}
        {entry.sourcePlugin && (
          <span className="bidi">via {escapeText(entry.sourcePlugin, 40)}</span>
        )}
        <span className="end">
          {entry.runId && (
            <Link to={whyUrl(entry.runId, sessionId, entry.number)}>
              {entry.role === "assistant" ? "Why" : "Run"}
            </Link>
          )}{" "}
          {entry.number} · <Time at={entry.timestamp} />
        </span>
      </div>
      <EntryText text={entry.content} query={query} isShort={entry.role === "tool"} />
      <ToolResult reply={entry.item} />
      {unanswered && <UnansweredNotice state={unanswered} />}
    </li>
  );
}

/** The run of an entry, with what it was made of. */
const whyUrl = (runId: string, sessionId: string, number: number) =>
  `/runs/${encodeURIComponent(runId)}?view=why&entry=${encodeURIComponent(`${sessionId}:${number}`)}`;

/** Text of an entry; long texts are collapsed unless there is a query. */
function EntryText({ text, query, isShort }: { text: string; query: string; isShort: boolean }) {
  const [open, setOpen] = useState(false);
  const collapseAt = collapseIndex(text, isShort ? 6 : 24);
  const isCollapsed = collapseAt !== null && !open && !query;
  return (
    <>
      <div className="entry-text bidi">
        <HighlightedText
          text={isCollapsed ? `${text.slice(0, collapseAt)}…` : text}
          query={query}
        />
      </div>
      {collapseAt !== null && !query && (
        <Button small kind="plain" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </Button>
      )}
    </>
  );
}

function UnansweredNotice({ state }: { state: TurnState }) {
  const Icon = state === "failed" ? AlertTriangle : Clock;
  return (
    <p className={state === "failed" ? "no-answer bad" : "no-answer"}>
      <Icon size={14} aria-hidden />
      {state === "failed" ? "Turn failed: no answer" : "Waiting for an answer"}
    </p>
  );
}
