// All agents of the tenant. Events refresh single rows; when many rows change, the whole list is
// reloaded, at a limited rate.

import { useEffect, useSyncExternalStore } from "react";
import { graphql } from "../../api/client";
import {
  AgentOverview,
  AgentsOverview,
  type AgentsOverviewQuery,
} from "../../api/graphql.generated";
import { Problem } from "../../api/problem";
import { type ServerEvent, subscribeToEvents } from "../../events/event-stream";
import { useSession } from "../../layout/session-context";

export type AgentRow = NonNullable<AgentsOverviewQuery["agents"]>["items"][number];

export interface AgentListState {
  rows: readonly AgentRow[];
  /** Whether every page was loaded at least once. */
  isComplete: boolean;
  error: unknown;
}

const PAGE_SIZE = 500;
const MAX_SINGLE_REFRESHES = 10;
const BATCH_MS = 250;
const MIN_RELOAD_INTERVAL_MS = 2_000;
const ALL = Symbol("all agents");
const SHOWN_RECORD_TYPES = new Set(["template", "person", "policy"]);

export class AgentList {
  #state: AgentListState = { rows: [], isComplete: false, error: null };
  #subscribers = new Set<() => void>();
  #dirty = new Set<string>();
  #reloadAll = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isLoading = false;
  #nextReloadAt = 0;

  getState = () => this.#state;

  subscribe = (subscriber: () => void) => {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  };

  /** Loads every page; the first load publishes each page at once. */
  load = async () => {
    if (this.#isLoading) {
      this.#reloadAll = true;
      return;
    }
    this.#isLoading = true;
    this.#reloadAll = false;
    this.#dirty.clear();
    const startedAt = performance.now();
    try {
      await this.#loadPages();
    } catch (error) {
      this.#set({ error });
    }
    const endedAt = performance.now();
    this.#nextReloadAt = endedAt + Math.max(MIN_RELOAD_INTERVAL_MS, 4 * (endedAt - startedAt));
    this.#isLoading = false;
    if (this.#reloadAll || this.#dirty.size > 0) this.#schedule();
  };

  onEvent = (event: ServerEvent) => {
    const affected = affectedAgent(event);
    if (affected === null) return;
    if (affected === ALL) this.#reloadAll = true;
    else this.#dirty.add(affected);
    if (!this.#isLoading) this.#schedule();
  };

  async #loadPages() {
    const rows: AgentRow[] = [];
    let after: string | null | undefined = "";
    while (after !== null && after !== undefined) {
      const page: AgentsOverviewQuery = await graphql(AgentsOverview, { after, first: PAGE_SIZE });
      if (!page.agents) throw new Problem(200, { message: "Cannot list the agents." });
      rows.push(...page.agents.items);
      after = page.agents.next;
      if (!this.#state.isComplete) this.#set({ rows: [...rows], error: null });
    }
    this.#set({ rows, isComplete: true, error: null });
  }

  #schedule() {
    const wait = Math.max(
      BATCH_MS,
      this.#needsFullReload() ? this.#nextReloadAt - performance.now() : 0,
    );
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#refresh(), wait);
  }

  #needsFullReload = () => this.#reloadAll || this.#dirty.size > MAX_SINGLE_REFRESHES;

  async #refresh() {
    if (this.#needsFullReload()) return this.load();
    const ids = [...this.#dirty];
    this.#dirty.clear();
    const results = await Promise.all(
      ids.map((id) => graphql(AgentOverview, { id }).catch(() => undefined)),
    );
    const fresh = new Map(ids.map((id, index) => [id, results[index]?.agent] as const));
    const remaining = this.#state.rows.filter(({ id }) => fresh.get(id) !== null);
    const knownIds = new Set(remaining.map(({ id }) => id));
    const added = [...fresh.values()].filter((row) => row && !knownIds.has(row.id)) as AgentRow[];
    this.#set({ rows: [...remaining.map((row) => fresh.get(row.id) ?? row), ...added] });
  }

  #set(patch: Partial<AgentListState>) {
    this.#state = { ...this.#state, ...patch };
    for (const subscriber of this.#subscribers) subscriber();
  }
}

/** Id of the agent whose row an event makes stale, ALL, or null. */
function affectedAgent({ type, payload, workspace }: ServerEvent): string | typeof ALL | null {
  if (type === "record.changed") {
    if (payload["noun"] === "agent") return String(payload["id"]);
    return SHOWN_RECORD_TYPES.has(String(payload["noun"])) ? ALL : null;
  }
  if (workspace?.kind === "agent") return workspace.name;
  return workspace?.kind === "template" || workspace?.kind === "defaults" ? ALL : null;
}

let cached: { owner: string; list: AgentList } | null = null;

/** One list per signed-in user, shared by all screens. */
function agentListFor(owner: string): AgentList {
  if (cached?.owner !== owner) cached = { owner, list: new AgentList() };
  return cached.list;
}

export function useAgentList(): AgentListState & { reload: () => void } {
  const { tenant, person } = useSession();
  const list = agentListFor(`${tenant.id} ${person?.id ?? ""}`);
  useEffect(() => {
    void list.load();
    return subscribeToEvents(list.onEvent);
  }, [list]);
  const state = useSyncExternalStore(list.subscribe, list.getState);
  return { ...state, reload: () => void list.load() };
}

/** Agents that are loaded already; sends no request. */
export function cachedAgents(): readonly AgentRow[] {
  return cached?.list.getState().rows ?? [];
}
