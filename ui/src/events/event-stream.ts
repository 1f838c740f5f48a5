// Events of the tenant, pushed by the server. One tab per browser reads the stream under a lock and
// relays it to the other tabs, since browsers limit the connections to one server.

import type { QueryClient, QueryKey } from "@tanstack/react-query";

export interface ServerEvent {
  eventId: string;
  type: string;
  payload: Record<string, unknown>;
  timestamp: string;
  workspace: { kind: string; name: string } | null;
  runId: string | null;
}

type Listener = (event: ServerEvent) => void;
export type ConnectionState = "connecting" | "live" | "lost";

/** What tabs send each other. */
interface TabMessage {
  event?: ServerEvent;
  state?: ConnectionState;
  /** Events were lost: every query is stale. */
  missed?: boolean;
  /** A new tab asks the leader for the connection state. */
  stateRequested?: boolean;
}

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let connectionState: ConnectionState = "connecting";

export const connectionStore = {
  subscribe: (watcher: () => void) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  },
  now: () => connectionState,
};

function setConnectionState(state: ConnectionState) {
  connectionState = state;
  for (const watcher of watchers) watcher();
}

/** Calls `listener` with every event of the tenant. Returns a function that unsubscribes. */
export function subscribeToEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const EVENT_TYPES = [
  "workspace.updated",
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.abandoned",
  "approval.requested",
  "approval.answered",
  "approval.expired",
  "approval.finished",
  "review.requested",
  "review.answered",
  "dream.proposed",
  "dream.answered",
  "record.changed",
];

/** Receives events and invalidates the queries they make stale. Returns a function that stops it. */
export function startEventStream(queries: QueryClient): () => void {
  const channel = new BroadcastChannel("carrel-live");
  const abort = new AbortController();
  const invalidate = debouncedInvalidate(queries);
  const send = (message: TabMessage) => channel.postMessage(message);
  const handleEvent = (event: ServerEvent) => {
    for (const listener of listeners) listener(event);
    invalidate([...staleQueryKeys(event), ["overview"], ["activity"]]);
  };
  let isLeader = false;
  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (data.event) handleEvent(data.event);
    if (data.state) setConnectionState(data.state);
    if (data.missed) invalidate([[]]);
    if (data.stateRequested && isLeader) send({ state: connectionState });
  };
  const lead = () => {
    isLeader = true;
    return readStream(abort.signal, {
      onEvent: (event) => {
        handleEvent(event);
        send({ event });
      },
      onState: (state, reopened) => {
        setConnectionState(state);
        if (reopened) invalidate([[]]);
        else if (state === "live") invalidateLoaded(queries);
        // Other tabs missed what happened since the tab that read the stream before was closed.
        send({ state, missed: state === "live" });
      },
    });
  };
  navigator.locks.request("carrel-live", { signal: abort.signal }, lead).catch(() => undefined);
  send({ stateRequested: true });
  return () => {
    abort.abort();
    channel.close();
  };
}

/** Queries answered before the stream opened: it does not report changes made since then. */
export function invalidateLoaded(queries: Pick<QueryClient, "invalidateQueries">) {
  void queries.invalidateQueries({
    predicate: ({ state }) => state.data !== undefined && state.fetchStatus === "idle",
  });
}

interface StreamHandlers {
  onEvent: (event: ServerEvent) => void;
  onState: (state: ConnectionState, reopened: boolean) => void;
}

/** Reads the stream until `signal` aborts. After a disconnect the browser resumes it. */
function readStream(signal: AbortSignal, { onEvent, onState }: StreamHandlers): Promise<void> {
  return new Promise((resolve) => {
    let source: EventSource | null = null;
    let retryTimer: ReturnType<typeof setTimeout> | undefined;
    let wasOpen = false;
    const open = () => {
      source = new EventSource("/v1/events");
      source.onopen = () => {
        onState("live", wasOpen);
        wasOpen = true;
      };
      source.onerror = () => {
        onState("lost", false);
        if (source?.readyState !== EventSource.CLOSED) return;
        retryTimer = setTimeout(open, 3000);
        // The server refused the connection: the session may have ended.
        dispatchEvent(new Event("carrel:signed-out"));
      };
      const onMessage = (message: MessageEvent<string>) => onEvent(JSON.parse(message.data));
      for (const type of EVENT_TYPES) source.addEventListener(type, onMessage);
    };
    signal.addEventListener("abort", () => {
      clearTimeout(retryTimer);
      source?.close();
      resolve();
    });
    open();
  });
}

const AGENT_KEYS: QueryKey[] = [
  ["agents"],
  ["agent"],
  ["agent-records"],
  ["files"],
  ["prompt"],
  ["pins"],
  ["inbox"],
];
const RECORD_KEYS: Record<string, QueryKey[]> = {
  agent: [...AGENT_KEYS, ["templates"]],
  template: [...AGENT_KEYS, ["templates"]],
  person: [...AGENT_KEYS, ["people"], ["session"]],
  tenant: [...AGENT_KEYS, ["session"]],
  policy: [...AGENT_KEYS, ["policy"]],
  defaults: [["files"], ["defaults"]],
  sandbox: [["sandboxes"]],
  workspace: [["workspaces"]],
  memory: [["memories"]],
  dream: [["dreams"], ["memories"], ["inbox"]],
};

/** Query keys that an event makes stale, as prefixes. */
export function staleQueryKeys({ type, payload, workspace, runId }: ServerEvent): QueryKey[] {
  if (type.startsWith("approval.")) return [["approvals"], ["inbox"]];
  if (type.startsWith("run.")) return [["runs"], ["run", payload["runId"] ?? runId], ["agents"]];
  if (type === "record.changed") return RECORD_KEYS[String(payload["noun"])] ?? [];
  if (type !== "workspace.updated" || !workspace) return [];
  const { kind, name } = workspace;
  if (kind === "workspace") return [["files", "workspace", name]];
  if (kind === "items") return [["items"]];
  if (kind === "agent") {
    const agentFiles: QueryKey = ["files", "agent", name];
    return [agentFiles, ["pins"], ["prompt"], ["memories"], ["dreams"], ["inbox"], ["agents"]];
  }
  return [["files"], ["pins"], ["prompt"], ["inbox"], ["agents"], ["templates"], ["impact"]];
}

const BATCH_MS = 120;
/** Minimum milliseconds between two refetches of queries that read all agents. */
const MIN_INTERVAL_MS: Record<string, number> = {
  inbox: 5_000,
  overview: 5_000,
  activity: 2_000,
  "agent-records": 10_000,
  templates: 3_000,
};

/** Returns a function that invalidates query keys, once per burst of events (120 ms). */
export function debouncedInvalidate(queries: Pick<QueryClient, "invalidateQueries">) {
  const due = new Map<string, { key: QueryKey; at: number }>();
  const lastRunAt = new Map<string, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = () => {
    const now = Date.now();
    for (const [name, { key, at }] of due) {
      if (at > now) continue;
      due.delete(name);
      lastRunAt.set(name, now);
      void queries.invalidateQueries({ queryKey: key });
    }
    const next = Math.min(...[...due.values()].map(({ at }) => at));
    timer = due.size > 0 ? setTimeout(run, next - now) : undefined;
  };
  return (keys: QueryKey[]) => {
    const now = Date.now();
    for (const key of keys) {
      const name = JSON.stringify(key);
      const earliest = (lastRunAt.get(name) ?? 0) + (MIN_INTERVAL_MS[String(key[0])] ?? 0);
      if (!due.has(name)) due.set(name, { key, at: Math.max(now + BATCH_MS, earliest) });
    }
    if (timer !== undefined) clearTimeout(timer);
    const soonest = Math.min(...[...due.values()].map(({ at }) => at));
    timer = due.size > 0 ? setTimeout(run, Math.max(0, soonest - now)) : undefined;
  };
}
