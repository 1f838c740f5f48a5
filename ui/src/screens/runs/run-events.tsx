// What a run did, as it does it.

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
      <EmptyState icon={Radio} title="Nothing has happened yet">
        <p>
          What is written with the header <code>Carrel-Run: {run.runId}</code> appears here at once.
        </p>
      </EmptyState>
    );
  return (
    <div className="stack">
      <p className="faint" role="status">
        {isLive ? "The run goes on: what it does appears here." : "The run has ended: this is all."}
      </p>
      <ol className="card event-list" aria-label="Events of the run">
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
      <span className="grow cut bidi">
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
