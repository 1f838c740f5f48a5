// What an event makes old, and how often it is asked for again.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Happened, keysOf, waker } from "../src/events/event-stream";

const happened = (more: Partial<Happened>): Happened => ({
  eventId: "evt_1",
  type: "workspace.updated",
  payload: { path: "SOUL.md", version: 2 },
  timestamp: "2026-01-01T00:00:00.000Z",
  workspace: null,
  runId: null,
  ...more,
});

const words = (event: Happened) => keysOf(event).map((key) => key[0]);

describe("what an event makes old", () => {
  test("an agent's write is of that agent's files alone", () => {
    const keys = keysOf(happened({ workspace: { kind: "agent", name: "agt_1" } }));
    expect(keys).toContainEqual(["files", "agent", "agt_1"]);
    expect(keys).not.toContainEqual(["files"]);
  });

  test("a template's write is of everybody's files, and of what waits", () => {
    const keys = words(happened({ workspace: { kind: "template", name: "tpl_1" } }));
    expect(keys).toEqual(expect.arrayContaining(["files", "pins", "inbox", "prompt", "impact"]));
  });

  test("a record that nobody shows makes nothing old", () => {
    const odd = happened({ type: "record.changed", payload: { noun: "vault", id: "x" } });
    expect(keysOf(odd)).toEqual([]);
    const agent = happened({ type: "record.changed", payload: { noun: "agent", id: "x" } });
    expect(words(agent)).toContain("agent");
  });
});

describe("how often it is asked again", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("a burst is asked for once, and what looks at all agents not before it has rested", () => {
    const asked: string[] = [];
    const invalidateQueries = vi.fn(
      async ({ queryKey }: { queryKey?: readonly unknown[] } = {}) => {
        asked.push(String(queryKey?.[0]));
      },
    );
    const wake = waker({ invalidateQueries } as unknown as Parameters<typeof waker>[0]);
    for (let count = 0; count < 50; count += 1) wake([["pins"], ["inbox"]]);
    vi.advanceTimersByTime(200);
    expect(asked.sort()).toEqual(["inbox", "pins"]);
    wake([["pins"], ["inbox"]]);
    vi.advanceTimersByTime(1_000);
    expect(asked.filter((word) => word === "pins")).toHaveLength(2);
    expect(asked.filter((word) => word === "inbox")).toHaveLength(1);
    vi.advanceTimersByTime(5_000);
    expect(asked.filter((word) => word === "inbox")).toHaveLength(2);
  });
});
