// All agents of the tenant, page by page, and kept true by what happens: one row at a time where few
// change, all of them again, not too often, where many do.

import { useEffect, useSyncExternalStore } from "react";
import { graphql } from "../../api/client";
import {
  AgentOverview,
  AgentsOverview,
  type AgentsOverviewQuery,
} from "../../api/graphql.generated";
import { Problem } from "../../api/problem";
import { follow, type Happened } from "../../events/event-stream";
import { useSession } from "../../layout/session-context";

export type AgentRow = NonNullable<AgentsOverviewQuery["agents"]>["items"][number];

export interface Listed {
  rows: readonly AgentRow[];
  /** Whether every page has come at least once. */
  whole: boolean;
  error: unknown;
}

const PAGE = 500;
const FEW = 10;
const GATHER = 250;
const PAUSE = 2_000;
const ALL = Symbol("all agents");
const SEEN = new Set(["template", "person", "policy"]);

export class AgentList {
  #now: Listed = { rows: [], whole: false, error: null };
  #told = new Set<() => void>();
  #dirty = new Set<string>();
  #all = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #busy = false;
  #rested = 0;

  now = () => this.#now;

  subscribe = (told: () => void) => {
    this.#told.add(told);
    return () => this.#told.delete(told);
  };

  /** Loads every page; the first time they are shown as they come. */
  load = async () => {
    if (this.#busy) {
      this.#all = true;
      return;
    }
    this.#busy = true;
    this.#all = false;
    this.#dirty.clear();
    const began = performance.now();
    try {
      await this.#pages();
    } catch (error) {
      this.#set({ error });
    }
    const ended = performance.now();
    this.#rested = ended + Math.max(PAUSE, 4 * (ended - began));
    this.#busy = false;
    if (this.#all || this.#dirty.size > 0) this.#wake();
  };

  hear = (happened: Happened) => {
    const touched = touches(happened);
    if (touched === null) return;
    if (touched === ALL) this.#all = true;
    else this.#dirty.add(touched);
    if (!this.#busy) this.#wake();
  };

  async #pages() {
    const rows: AgentRow[] = [];
    let after: string | null | undefined = "";
    while (after !== null && after !== undefined) {
      const page: AgentsOverviewQuery = await graphql(AgentsOverview, { after, first: PAGE });
      if (!page.agents) throw new Problem(200, { message: "The agents cannot be listed." });
      rows.push(...page.agents.items);
      after = page.agents.next;
      if (!this.#now.whole) this.#set({ rows: [...rows], error: null });
    }
    this.#set({ rows, whole: true, error: null });
  }

  #wake() {
    const wait = Math.max(GATHER, this.#many() ? this.#rested - performance.now() : 0);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#catchUp(), wait);
  }

  #many = () => this.#all || this.#dirty.size > FEW;

  async #catchUp() {
    if (this.#many()) return this.load();
    const ids = [...this.#dirty];
    this.#dirty.clear();
    const found = await Promise.all(
      ids.map((id) => graphql(AgentOverview, { id }).catch(() => undefined)),
    );
    const fresh = new Map(ids.map((id, at) => [id, found[at]?.agent] as const));
    const kept = this.#now.rows.filter(({ id }) => fresh.get(id) !== null);
    const known = new Set(kept.map(({ id }) => id));
    const added = [...fresh.values()].filter((row) => row && !known.has(row.id)) as AgentRow[];
    this.#set({ rows: [...kept.map((row) => fresh.get(row.id) ?? row), ...added] });
  }

  #set(some: Partial<Listed>) {
    this.#now = { ...this.#now, ...some };
    for (const told of this.#told) told();
  }
}

/** Which agent's row an event makes old, or those of all. */
function touches({ type, payload, workspace }: Happened): string | typeof ALL | null {
  if (type === "record.changed") {
    if (payload["noun"] === "agent") return String(payload["id"]);
    return SEEN.has(String(payload["noun"])) ? ALL : null;
  }
  if (workspace?.kind === "agent") return workspace.name;
  return workspace?.kind === "template" || workspace?.kind === "defaults" ? ALL : null;
}

let held: { whose: string; list: AgentList } | null = null;

/** One list for all screens; another person's is another list. */
function listOf(whose: string): AgentList {
  if (held?.whose !== whose) held = { whose, list: new AgentList() };
  return held.list;
}

export function useAgentList(): Listed & { again: () => void } {
  const { tenant, person } = useSession();
  const list = listOf(`${tenant.id} ${person?.id ?? ""}`);
  useEffect(() => {
    void list.load();
    return follow(list.hear);
  }, [list]);
  const listed = useSyncExternalStore(list.subscribe, list.now);
  return { ...listed, again: () => void list.load() };
}

/** What is known of the agents already, without asking for more. */
export function knownAgents(): readonly AgentRow[] {
  return held?.list.now().rows ?? [];
}
