// Live event log of a run.

import { Radio } from "lucide-react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import type { Run, RunEvent } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { EmptyState } from "../../components/query-states";
import { Time } from "../../components/time";
import { useRunEvents } from "./use-run-events";

export function RunEvents({ run }: { run: Run }) {
  const { events, isLive } = useRunEvents(run.runId);
  if (events.length === 0)
    return (
      <EmptyState icon={Radio} title="No events yet">
        <p>
          Writes with the header <code>Carrel-Run: {run.runId}</code> appear here.
        </p>
      </EmptyState>
    );
  return (
    <div className="stack">
      <p className="faint" role="status">
        {isLive ? "Run in progress. New events appear here." : "Run ended."}
      </p>
      <ol className="card event-list" aria-label="Run events">
        {events.map((event) => (
          <EventRow key={event.eventId} event={event} run={run} />
        ))}
      </ol>
    </div>
  );
}

function EventRow({ event, run }: { event: RunEvent; run: Run }) {
  const payload = event.payload as Record<string, unknown>;
  const path = typeof payload["path"] === "string" ? payload["path"] : null;
  return (
    <li>
      <span className="faint number">{event.sequence}</span>
      <code>{event.type}</code>
      <span className="grow truncate bidi">
        {path && run.agentId ? (
          <Link to={fileUrl({ kind: "agent", id: run.agentId }, path)}>
            {escapeText(path, 120)}
          </Link>
        ) : (
          escapeText(path ?? "", 120)
        )}
        {typeof payload["version"] === "number" && (
          <span className="faint"> v{payload["version"]}</span>
        )}
      </span>
      <span className="faint">
        <Time at={event.timestamp} />
      </span>
    </li>
  );
}
