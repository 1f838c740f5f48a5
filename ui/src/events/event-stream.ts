// What others change, as it happens. One tab of a browser holds the stream, under a lock, and tells
// the others: browsers allow only a few connections to one server.

import type { QueryClient, QueryKey } from "@tanstack/react-query";

export interface Happened {
  eventId: string;
  type: string;
  payload: Record<string, unknown>;
  timestamp: string;
  workspace: { kind: string; name: string } | null;
  runId: string | null;
}

type Listener = (happened: Happened) => void;
export type Standing = "connecting" | "live" | "lost";

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let standing: Standing = "connecting";

export const liveStanding = {
  subscribe: (told: () => void) => {
    watchers.add(told);
    return () => watchers.delete(told);
  },
  now: () => standing,
};

function stand(now: Standing) {
  standing = now;
  for (const told of watchers) told();
}

/** Called with every event of the tenant until the answer is called. */
export function follow(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const TYPES = [
  "workspace.updated",
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "approval.requested",
  "approval.answered",
  "approval.finished",
  "record.changed",
];

/** Follows the tenant until the answer is called, and lets what is shown be asked for again. */
export function goLive(queries: QueryClient): () => void {
  const channel = new BroadcastChannel("carrel-live");
  const ended = new AbortController();
  const wake = waker(queries);
  const hear = (happened: Happened) => {
    for (const listener of listeners) listener(happened);
    wake(keysOf(happened));
  };
  channel.onmessage = ({ data }) => {
    if (data.happened) hear(data.happened);
    if (data.standing) stand(data.standing);
    if (data.missed) wake([[]]);
    if (data.asked && holding) channel.postMessage({ standing });
  };
  let holding = false;
  const hold = () => {
    holding = true;
    return pour(ended.signal, {
      happened: (happened) => {
        hear(happened);
        channel.postMessage({ happened });
      },
      standing: (now, missed) => {
        stand(now);
        if (missed) wake([[]]);
        channel.postMessage({ standing: now, missed });
      },
    });
  };
  navigator.locks.request("carrel-live", { signal: ended.signal }, hold).catch(() => undefined);
  channel.postMessage({ asked: true });
  return () => {
    ended.abort();
    channel.close();
  };
}

interface Told {
  happened: (happened: Happened) => void;
  standing: (now: Standing, missed: boolean) => void;
}

/** Reads the stream until it is called off; the browser resumes it where it broke off. */
function pour(until: AbortSignal, told: Told): Promise<void> {
  return new Promise((done) => {
    let source: EventSource | null = null;
    let again: ReturnType<typeof setTimeout> | undefined;
    let wasOpen = false;
    const open = () => {
      source = new EventSource("/v1/events");
      source.onopen = () => {
        told.standing("live", wasOpen);
        wasOpen = true;
      };
      source.onerror = () => {
        told.standing("lost", false);
        if (source?.readyState !== EventSource.CLOSED) return;
        again = setTimeout(open, 3000);
        // Refused rather than cut off: perhaps the session has ended.
        dispatchEvent(new Event("carrel:signed-out"));
      };
      const hear = (event: MessageEvent<string>) => told.happened(JSON.parse(event.data));
      for (const type of TYPES) source.addEventListener(type, hear);
    };
    until.addEventListener("abort", () => {
      clearTimeout(again);
      source?.close();
      done();
    });
    open();
  });
}

const AGENTS: QueryKey[] = [
  ["agents"],
  ["agent"],
  ["agent-records"],
  ["files"],
  ["prompt"],
  ["pins"],
  ["inbox"],
];
const RECORDS: Record<string, QueryKey[]> = {
  agent: [...AGENTS, ["templates"]],
  template: [...AGENTS, ["templates"]],
  person: [...AGENTS, ["people"], ["session"]],
  tenant: [...AGENTS, ["session"]],
  policy: [...AGENTS, ["policy"]],
  defaults: [["files"], ["defaults"]],
  sandbox: [["sandboxes"]],
  workspace: [["workspaces"]],
  memory: [["memories"]],
  dream: [["dreams"], ["memories"], ["inbox"]],
};

/** Which answers an event makes old, by the first words of their keys. */
export function keysOf({ type, payload, workspace, runId }: Happened): QueryKey[] {
  if (type.startsWith("approval.")) return [["approvals"], ["inbox"]];
  if (type.startsWith("run.")) return [["runs"], ["run", payload["runId"] ?? runId], ["agents"]];
  if (type === "record.changed") return RECORDS[String(payload["noun"])] ?? [];
  if (type !== "workspace.updated" || !workspace) return [];
  const { kind, name } = workspace;
  if (kind === "workspace") return [["files", "workspace", name]];
  if (kind === "items") return [["items"]];
  if (kind === "agent") {
    const own: QueryKey = ["files", "agent", name];
    return [own, ["pins"], ["prompt"], ["memories"], ["dreams"], ["inbox"], ["agents"]];
  }
  return [["files"], ["pins"], ["prompt"], ["inbox"], ["agents"], ["templates"], ["impact"]];
}

/** Milliseconds between two answers that look at all agents, however much happens. */
const CALM: Record<string, number> = { inbox: 5_000, "agent-records": 10_000, templates: 3_000 };

/** Gathers what is to be asked again for a moment, so that a burst is asked for once. */
export function waker(queries: Pick<QueryClient, "invalidateQueries">) {
  const due = new Map<string, { key: QueryKey; at: number }>();
  const last = new Map<string, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = () => {
    const now = Date.now();
    for (const [name, { key, at }] of due) {
      if (at > now) continue;
      due.delete(name);
      last.set(name, now);
      void queries.invalidateQueries({ queryKey: key });
    }
    const next = Math.min(...[...due.values()].map(({ at }) => at));
    timer = due.size > 0 ? setTimeout(run, next - now) : undefined;
  };
  return (keys: QueryKey[]) => {
    const now = Date.now();
    for (const key of keys) {
      const name = JSON.stringify(key);
      const rest = (last.get(name) ?? 0) + (CALM[String(key[0])] ?? 0);
      if (!due.has(name)) due.set(name, { key, at: Math.max(now + 120, rest) });
    }
    if (timer !== undefined) clearTimeout(timer);
    const soonest = Math.min(...[...due.values()].map(({ at }) => at));
    timer = due.size > 0 ? setTimeout(run, Math.max(0, soonest - now)) : undefined;
  };
}
