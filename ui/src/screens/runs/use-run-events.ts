// Reads a run's event stream from its start until the run ends.

import { useEffect, useReducer } from "react";
import type { RunEvent } from "../../api/runs";

const END_EVENTS = ["run.completed", "run.failed", "run.cancelled", "run.abandoned"];
const EVENT_TYPES = [
  "run.started",
  ...END_EVENTS,
  "workspace.updated",
  "tool.called",
  "approval.requested",
  "approval.answered",
  "approval.expired",
  "approval.finished",
];

interface RunLog {
  runId: string;
  events: RunEvent[];
  isLive: boolean;
}

/** The log with an event added; duplicates after a reconnect are ignored. */
export function appendEvent(log: RunLog, event: RunEvent): RunLog {
  if (log.events.some(({ eventId }) => eventId === event.eventId)) return log;
  return {
    ...log,
    events: [...log.events, event],
    isLive: log.isLive && !END_EVENTS.includes(event.type),
  };
}

const reduce = (log: RunLog, action: RunEvent | { reset: string }): RunLog =>
  "reset" in action ? { runId: action.reset, events: [], isLive: true } : appendEvent(log, action);

export function useRunEvents(runId: string): RunLog {
  const [log, dispatch] = useReducer(reduce, { runId, events: [], isLive: true });
  useEffect(() => {
    dispatch({ reset: runId });
    const source = new EventSource(`/v1/runs/${encodeURIComponent(runId)}/events`);
    const onMessage = ({ data, type }: MessageEvent<string>) => {
      dispatch(JSON.parse(data) as RunEvent);
      if (END_EVENTS.includes(type)) source.close();
    };
    for (const type of EVENT_TYPES) source.addEventListener(type, onMessage);
    return () => source.close();
  }, [runId]);
  return log;
}
