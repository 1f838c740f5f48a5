// What a run did, as it does it.

import { Radio } from "lucide-react";
import { Link } from "react-router";
import { addressOf } from "../../api/files";
import type { Run, RunEvent } from "../../api/runs";
import { plain } from "../../components/escape-text";
import { Empty } from "../../components/query-states";
import { Time } from "../../components/time";
import { useRunEvents } from "./use-run-events";

export function RunEvents({ run }: { run: Run }) {
  const { events, isLive } = useRunEvents(run.runId);
  if (events.length === 0)
    return (
      <Empty icon={Radio} title="Nothing has happened yet">
        <p>
          What is written with the header <code>Carrel-Run: {run.runId}</code> appears here at once.
        </p>
      </Empty>
    );
  return (
    <div className="stack">
      <p className="faint" role="status">
        {isLive ? "The run goes on: what it does appears here." : "The run has ended: this is all."}
      </p>
      <ol className="card event-list" aria-label="Events of the run">
        {events.map((event) => (
          <EventLine key={event.eventId} event={event} run={run} />
        ))}
      </ol>
    </div>
  );
}

function EventLine({ event, run }: { event: RunEvent; run: Run }) {
  const said = event.payload as Record<string, unknown>;
  const path = typeof said["path"] === "string" ? said["path"] : null;
  return (
    <li>
      <span className="faint number">{event.sequence}</span>
      <code>{event.type}</code>
      <span className="grow cut bidi">
        {path && run.agentId ? (
          <Link to={addressOf({ kind: "agent", id: run.agentId }, path)}>{plain(path, 120)}</Link>
        ) : (
          plain(path ?? "", 120)
        )}
        {typeof said["version"] === "number" && <span className="faint"> v{said["version"]}</span>}
      </span>
      <span className="faint">
        <Time at={event.timestamp} />
      </span>
    </li>
  );
}
