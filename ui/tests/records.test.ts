import { describe, expect, test } from "vitest";
import type { AgentRecord } from "../src/api/agent-records";
import { objectUrl } from "../src/api/audit";
import type { Sandbox } from "../src/api/sandboxes";
import { splitHiddenCharacters } from "../src/components/hidden-characters";
import { formatRemaining } from "../src/screens/approvals/time-remaining";
import { itemSetsFor } from "../src/screens/items/item-sets";
import { draftFromSandbox, patchFromDraft } from "../src/screens/sandboxes/sandbox-draft";
import { moveItem } from "../src/screens/settings/class-rules";

const stored = {
  name: "usual",
  config: {
    provider: "local",
    permissionMode: "ask",
    timeout: 60,
    envVars: { TOKEN: "********", OLD: "********" },
    options: { image: "slim", apiKey: "********" },
  },
} as unknown as Sandbox;

describe("sandbox form", () => {
  test("an untouched form removes nothing", () => {
    const { config } = patchFromDraft(draftFromSandbox(stored), stored);
    expect(config?.timeout).toBe(60);
    expect(config?.envVars).toEqual({ TOKEN: "********", OLD: "********" });
    expect(config?.options).toEqual({ image: "slim", apiKey: "********" });
  });

  test("replaces typed values and removes deleted ones", () => {
    const draft = draftFromSandbox(stored);
    draft.variables = [{ id: 0, name: "TOKEN", value: "fresh", isStored: true }];
    draft.timeout = "";
    draft.options = '{"image": "slim"}';
    const { config } = patchFromDraft(draft, stored);
    expect(config?.envVars).toEqual({ TOKEN: "fresh", OLD: null });
    expect(config?.timeout).toBeNull();
    expect(config?.options).toEqual({ image: "slim", apiKey: null });
  });

  test("a new sandbox omits empty fields", () => {
    const { config } = patchFromDraft({ ...draftFromSandbox(), name: "new" });
    expect(config).toEqual({ provider: "local", permissionMode: "ask" });
  });

  test("options must be a JSON object", () => {
    expect(() => patchFromDraft({ ...draftFromSandbox(), options: "[1]" })).toThrow("JSON object");
  });
});

test("hidden characters are replaced by their code points", () => {
  expect(splitHiddenCharacters("a\u202eb\u200b c\u{e0041}")).toEqual([
    { text: "a", hidden: false },
    { text: "U+202E", hidden: true },
    { text: "b", hidden: false },
    { text: "U+200B", hidden: true },
    { text: " c", hidden: false },
    { text: "U+E0041", hidden: true },
  ]);
});

test("remaining time uses the largest unit that fits", () => {
  expect(formatRemaining("2026-01-01T02:30:00Z", Date.parse("2026-01-01T00:00:00Z"))).toBe(
    "2 hours",
  );
  expect(formatRemaining("2026-01-01T00:00:01Z", Date.parse("2026-01-01T00:00:00Z"))).toBe(
    "1 second",
  );
  expect(formatRemaining("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:00Z"))).toBe("");
});

test("a rule moves within the bounds of the list", () => {
  expect(moveItem(["a", "b", "c"], 2, -1)).toEqual(["a", "c", "b"]);
  expect(moveItem(["a", "b"], 0, -1)).toEqual(["a", "b"]);
});

test("records of the audit link to their screens, if any", () => {
  expect(objectUrl({ type: "sandbox", id: "sb_1" })).toBe("/sandboxes/sb_1");
  expect(objectUrl({ type: "policy", id: "policy" })).toBe("/settings/policy");
  expect(objectUrl({ type: "code", id: "cod_1" })).toBeNull();
});

describe("item sets", () => {
  const agents = [
    { id: "agt_1", isShared: false, ownerId: null, humanPairId: null },
    { id: "agt_2", isShared: false, ownerId: "per_mia", humanPairId: null },
  ] as unknown as AgentRecord[];

  test("a member's items are read through an agent of the member", () => {
    const sets = itemSetsFor(agents, [], "per_mia", false);
    expect(sets.map(({ id, agentId }) => [id, agentId])).toEqual([["per_mia", "agt_2"]]);
  });
});
