import { describe, expect, it } from "vitest";
import { isSlug, slugOf } from "../src/components/slug";
import { isLeaving, setRouter } from "../src/layout/navigation-state";
import { type AgentFilters, filterAgents, sortAgents } from "../src/screens/agents/agent-filters";
import type { AgentRow } from "../src/screens/agents/agent-list";
import { mergeConfig, parseOtherConfig } from "../src/screens/agents/config";
import { groupPendingFiles } from "../src/screens/review/followers";

const row = (name: string, overrides: Partial<AgentRow> = {}): AgentRow => ({
  id: name,
  slug: slugOf(name),
  name,
  isShared: false,
  template: null,
  humanPair: null,
  overrideCount: 0,
  updatesAvailable: 0,
  lastRun: null,
  ...overrides,
});
const NO_FILTERS: AgentFilters = {
  text: "",
  template: "",
  kind: "",
  updates: false,
  sort: "name",
  descending: false,
};

describe("agents", () => {
  it("match all words in any field, ignoring accents", () => {
    const rows = [row("Ada", { humanPair: { id: "p", name: "Zoë Ångström" } }), row("Bob")];
    expect(filterAgents(rows, { ...NO_FILTERS, text: "angstrom ADA" }).map(({ id }) => id)).toEqual(
      ["Ada"],
    );
  });
  it("without a value come last in both sort directions", () => {
    const rows = [row("none"), row("b", { template: { id: "1", name: "B" } })];
    expect(sortAgents(rows, "template", true).at(-1)?.id).toBe("none");
    expect(sortAgents(rows, "template", false).at(-1)?.id).toBe("none");
  });
  it("have slugs that are valid in URLs", () => {
    expect(slugOf("  Zoë & Müller! ")).toBe("zoe-muller");
    expect(isSlug(slugOf("x".repeat(200)))).toBe(true);
  });
});

describe("agent config", () => {
  it("keeps unchanged keys and drops emptied ones", () => {
    expect(mergeConfig({ a: 1, model: "m" }, { model: "" })).toEqual({ a: 1 });
  });
  it("rejects keys that have a form field", () => {
    expect(parseOtherConfig('{"model": 1}')).toHaveProperty("error");
    expect(parseOtherConfig("[]")).toHaveProperty("error");
  });
});

it("pending agents are grouped by pinned version", () => {
  const pin = { path: "G", latestSha: "new", updateAvailable: true, newlyOffered: false };
  const agent = (id: string, pinnedSha: string) => ({
    id,
    name: id,
    slug: id,
    pins: [{ ...pin, pinnedSha, overridden: false }],
  });
  const [file] = groupPendingFiles([agent("a", "x"), agent("b", "y"), agent("c", "y")]);
  expect(file?.groups.map(({ agents }) => agents.map(({ id }) => id))).toEqual([["b", "c"], ["a"]]);
});

describe("leaving a screen", () => {
  const stateOf = (navigation: "idle" | "loading", pathname: string) =>
    ({
      state: { navigation: { state: navigation }, location: { pathname } },
    }) as unknown as Parameters<typeof setRouter>[0];

  it("is told by the router before React renders it", () => {
    setRouter(stateOf("idle", "/agents"));
    expect(isLeaving("/agents")).toBe(false);
    setRouter(stateOf("loading", "/agents"));
    expect(isLeaving("/agents")).toBe(true);
    setRouter(stateOf("idle", "/agents/ada/workspace"));
    expect(isLeaving("/agents")).toBe(true);
  });
});
