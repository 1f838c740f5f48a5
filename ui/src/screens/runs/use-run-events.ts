// Follows a run's own log from its beginning until it has ended.

import { useEffect, useReducer } from "react";
import type { RunEvent } from "../../api/runs";

const ENDS = ["run.completed", "run.failed", "run.cancelled"];
const TYPES = [
  "run.started",
  ...ENDS,
  "workspace.updated",
  "approval.requested",
  "approval.answered",
  "approval.finished",
];

interface Log {
  runId: string;
  events: RunEvent[];
  isLive: boolean;
}

/** The log with one more event; one that was told before, as after a lost connection, is not added. */
export function heard(log: Log, event: RunEvent): Log {
  if (log.events.some(({ eventId }) => eventId === event.eventId)) return log;
  return {
    ...log,
    events: [...log.events, event],
    isLive: log.isLive && !ENDS.includes(event.type),
  };
}

const reduce = (log: Log, told: RunEvent | { begin: string }): Log =>
  "begin" in told ? { runId: told.begin, events: [], isLive: true } : heard(log, told);

export function useRunEvents(runId: string): Log {
  const [log, tell] = useReducer(reduce, { runId, events: [], isLive: true });
  useEffect(() => {
    tell({ begin: runId });
    const source = new EventSource(`/v1/runs/${encodeURIComponent(runId)}/events`);
    const hear = ({ data, type }: MessageEvent<string>) => {
      tell(JSON.parse(data) as RunEvent);
      if (ENDS.includes(type)) source.close();
    };
    for (const type of TYPES) source.addEventListener(type, hear);
    return () => source.close();
  }, [runId]);
  return log;
}
