// Which of the agents are shown, and in what order.

import { folded, hasAll, wordsOf } from "../../components/text-match";
import type { AgentRow } from "./agent-list";

export type Column = "name" | "template" | "human" | "overrides" | "updates" | "run";
export const COLUMNS: Column[] = ["name", "template", "human", "overrides", "updates", "run"];

export interface Wanted {
  text: string;
  template: string;
  kind: "" | "shared" | "private";
  updates: boolean;
  sort: Column;
  down: boolean;
}

const texts = new WeakMap<AgentRow, string>();

/** All that one can find an agent by. */
function textOf(row: AgentRow): string {
  let text = texts.get(row);
  if (text === undefined) {
    const said = [row.name, row.slug, row.template?.name, row.humanPair?.name];
    text = folded(said.filter(Boolean).join("\n"));
    texts.set(row, text);
  }
  return text;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const MEASURES: Record<"overrides" | "updates" | "run", (row: AgentRow) => number> = {
  overrides: (row) => row.overrideCount ?? 0,
  updates: (row) => row.updatesAvailable ?? 0,
  run: (row) => (row.lastRun ? Date.parse(row.lastRun.startedAt) : 0),
};

const NAMES: Record<"name" | "template" | "human", (row: AgentRow) => string | undefined> = {
  name: (row) => row.name,
  template: (row) => row.template?.name,
  human: (row) => row.humanPair?.name,
};

/** Rows ordered by a column. What has no value stands last, whichever way. */
export function sorted(rows: readonly AgentRow[], sort: Column, down: boolean): AgentRow[] {
  const turn = down ? -1 : 1;
  if (sort === "overrides" || sort === "updates" || sort === "run") {
    const measure = MEASURES[sort];
    const keyed = rows.map((row) => ({ row, key: measure(row) }));
    return keyed.sort((a, b) => turn * (a.key - b.key)).map(({ row }) => row);
  }
  const name = NAMES[sort];
  const keyed = rows.map((row) => ({ row, key: name(row)?.slice(0, 200) }));
  keyed.sort((a, b) => {
    if (!a.key || !b.key) return Number(!a.key) - Number(!b.key);
    return turn * collator.compare(a.key, b.key);
  });
  return keyed.map(({ row }) => row);
}

export function found(rows: readonly AgentRow[], wanted: Wanted): AgentRow[] {
  const words = wordsOf(wanted.text);
  return rows.filter(
    (row) =>
      (!wanted.template || (row.template?.id ?? "none") === wanted.template) &&
      (!wanted.kind || row.isShared === (wanted.kind === "shared")) &&
      (!wanted.updates || (row.updatesAvailable ?? 0) > 0) &&
      hasAll(textOf(row), words),
  );
}

/** The templates that are followed, by name, each with how many follow it. */
export function templatesOf(rows: readonly AgentRow[]): { id: string; name: string; n: number }[] {
  const followed = new Map<string, { id: string; name: string; n: number }>();
  for (const { template } of rows) {
    const id = template?.id ?? "none";
    const known = followed.get(id) ?? { id, name: template?.name ?? "No template", n: 0 };
    known.n += 1;
    followed.set(id, known);
  }
  return [...followed.values()].sort((a, b) => collator.compare(a.name, b.name));
}
