// What happened in a run: entries of its sessions, tool calls, writes and approvals, by time.

import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import {
  Activity,
  Bot,
  FilePen,
  type LucideIcon,
  MessageSquare,
  Settings2,
  ShieldQuestion,
  UserRound,
  Wrench,
} from "lucide-react";
import { useEffect } from "react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import { type EntryPreview, type TimeLineItem, timeLineQuery } from "../../api/provenance";
import type { Run, RunEvent } from "../../api/runs";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { useRunEvents } from "./use-run-events";

export function RunTimeLine({ run }: { run: Run }) {
  const timeLine = useInfiniteQuery(timeLineQuery(run.runId));
  const { events, isLive } = useRunEvents(run.runId);
  useReload(run.runId, events.length);
  return (
    <QueryResult query={timeLine}>
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        if (items.length === 0)
          return (
            <EmptyState icon={Activity} title="Nothing yet">
              <p>Entries, tool calls and writes of the run appear here.</p>
            </EmptyState>
          );
        return (
          <div className="stack">
            <p className="faint" role="status">
              {isLive ? "Run in progress. New events appear here." : "Run ended."}
            </p>
            <ol className="card event-list" aria-label="Time line">
              {items.map((item) => (
                <Row key={keyOf(item)} item={item} run={run} />
              ))}
            </ol>
            {timeLine.hasNextPage && (
              <div className="row">
                <Button
                  busy={timeLine.isFetchingNextPage}
                  onClick={() => void timeLine.fetchNextPage()}
                >
                  Load more
                </Button>
              </div>
            )}
          </div>
        );
      }}
    </QueryResult>
  );
}

/** Reads the last page again after new events. */
function useReload(runId: string, eventCount: number) {
  const queries = useQueryClient();
  useEffect(() => {
    if (eventCount) void queries.invalidateQueries({ queryKey: ["run", runId, "timeline"] });
  }, [queries, runId, eventCount]);
}

const keyOf = ({ event, entry }: TimeLineItem) =>
  event ? event.eventId : `${entry?.sessionId} ${entry?.number}`;

function Row({ item, run }: { item: TimeLineItem; run: Run }) {
  return (
    <li>
      {item.entry && <EntryRow entry={item.entry} agentId={run.agentId ?? ""} />}
      {item.event && <EventRow event={item.event} run={run} />}
      <span className="faint">
        <Time at={item.at} />
      </span>
    </li>
  );
}

const ROLE_ICONS: Record<EntryPreview["role"], LucideIcon> = {
  user: UserRound,
  assistant: Bot,
  tool: Wrench,
  system: Settings2,
};

function EntryRow({ entry, agentId }: { entry: EntryPreview; agentId: string }) {
  const Icon = ROLE_ICONS[entry.role] ?? MessageSquare;
  return (
    <>
      <Icon size={15} aria-hidden />
      <span className="time-line-name">{entry.role}</span>
      <Link className="grow truncate bidi" to={entryUrl(agentId, entry.sessionId, entry.number)}>
        {escapeText(entry.preview, 200) || "(no text)"}
        {entry.truncated && "…"}
      </Link>
    </>
  );
}

export const entryUrl = (agentId: string, sessionId: string, number: number) =>
  `/agents/${encodeURIComponent(agentId)}/sessions/${encodeURIComponent(sessionId)}?entry=${number}`;

function iconOf(type: string): LucideIcon {
  if (type === "workspace.updated") return FilePen;
  if (type === "tool.called") return Wrench;
  return type.startsWith("approval.") ? ShieldQuestion : Activity;
}

function EventRow({ event, run }: { event: RunEvent; run: Run }) {
  const Icon = iconOf(event.type);
  return (
    <>
      <Icon size={15} aria-hidden />
      <code className="time-line-name">{event.type}</code>
      <span className="grow truncate bidi">
        <EventDetail event={event} run={run} />
      </span>
    </>
  );
}

function EventDetail({ event, run }: { event: RunEvent; run: Run }) {
  const { path, version, tool, isError, durationMs, approvalId } = event.payload as {
    path?: string;
    version?: number;
    tool?: string;
    isError?: boolean;
    durationMs?: number;
    approvalId?: string;
  };
  if (path)
    return (
      <>
        {run.agentId ? (
          <Link to={fileUrl({ kind: "agent", id: run.agentId }, path)}>
            {escapeText(path, 120)}
          </Link>
        ) : (
          escapeText(path, 120)
        )}{" "}
        <span className="faint">v{version}</span>
      </>
    );
  if (!tool) return null;
  return (
    <>
      {approvalId ? (
        <Link to={`/approvals/${encodeURIComponent(approvalId)}`}>{escapeText(tool, 80)}</Link>
      ) : (
        escapeText(tool, 80)
      )}
      {durationMs !== undefined && <span className="faint"> {durationMs} ms</span>}
      {isError && <span className="badge bad">failed</span>}
    </>
  );
}
