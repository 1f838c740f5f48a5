// Filters and sorting of the agent list.

import { foldText, includesAllWords, splitWords } from "../../components/text-match";
import type { AgentRow } from "./agent-list";

export type Column = "name" | "template" | "human" | "overrides" | "updates" | "run";
export const COLUMNS: Column[] = ["name", "template", "human", "overrides", "updates", "run"];

export interface AgentFilters {
  text: string;
  template: string;
  kind: "" | "shared" | "private";
  updates: boolean;
  sort: Column;
  descending: boolean;
}

const searchTexts = new WeakMap<AgentRow, string>();

/** Folded text that an agent is searched by, cached per row. */
function searchText(row: AgentRow): string {
  let text = searchTexts.get(row);
  if (text === undefined) {
    const fields = [row.name, row.slug, row.template?.name, row.humanPair?.name];
    text = foldText(fields.filter(Boolean).join("\n"));
    searchTexts.set(row, text);
  }
  return text;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const NUMERIC_KEYS: Record<"overrides" | "updates" | "run", (row: AgentRow) => number> = {
  overrides: (row) => row.overrideCount ?? 0,
  updates: (row) => row.updatesAvailable ?? 0,
  run: (row) => (row.lastRun ? Date.parse(row.lastRun.startedAt) : 0),
};

const TEXT_KEYS: Record<"name" | "template" | "human", (row: AgentRow) => string | undefined> = {
  name: (row) => row.name,
  template: (row) => row.template?.name,
  human: (row) => row.humanPair?.name,
};

/** Rows sorted by a column. Rows without a value come last in both directions. */
export function sortAgents(
  rows: readonly AgentRow[],
  sort: Column,
  descending: boolean,
): AgentRow[] {
  const direction = descending ? -1 : 1;
  if (sort === "overrides" || sort === "updates" || sort === "run") {
    const keyOf = NUMERIC_KEYS[sort];
    const keyed = rows.map((row) => ({ row, key: keyOf(row) }));
    return keyed.sort((a, b) => direction * (a.key - b.key)).map(({ row }) => row);
  }
  const keyOf = TEXT_KEYS[sort];
  const keyed = rows.map((row) => ({ row, key: keyOf(row)?.slice(0, 200) }));
  keyed.sort((a, b) => {
    if (!a.key || !b.key) return Number(!a.key) - Number(!b.key);
    return direction * collator.compare(a.key, b.key);
  });
  return keyed.map(({ row }) => row);
}

export function filterAgents(rows: readonly AgentRow[], filters: AgentFilters): AgentRow[] {
  const words = splitWords(filters.text);
  return rows.filter(
    (row) =>
      (!filters.template || (row.template?.id ?? "none") === filters.template) &&
      (!filters.kind || row.isShared === (filters.kind === "shared")) &&
      (!filters.updates || (row.updatesAvailable ?? 0) > 0) &&
      includesAllWords(searchText(row), words),
  );
}

/** Templates in use, by name, each with its number of agents. */
export function countByTemplate(
  rows: readonly AgentRow[],
): { id: string; name: string; count: number }[] {
  const counts = new Map<string, { id: string; name: string; count: number }>();
  for (const { template } of rows) {
    const id = template?.id ?? "none";
    const entry = counts.get(id) ?? { id, name: template?.name ?? "No template", count: 0 };
    entry.count += 1;
    counts.set(id, entry);
  }
  return [...counts.values()].sort((a, b) => collator.compare(a.name, b.name));
}
