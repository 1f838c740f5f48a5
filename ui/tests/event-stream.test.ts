// Queries that events make stale, and how often they are refetched.

import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  debouncedInvalidate,
  invalidateLoaded,
  type ServerEvent,
  staleQueryKeys,
} from "../src/events/event-stream";

const createEvent = (fields: Partial<ServerEvent>): ServerEvent => ({
  eventId: "evt_1",
  type: "workspace.updated",
  payload: { path: "SOUL.md", version: 2 },
  timestamp: "2026-01-01T00:00:00.000Z",
  workspace: null,
  runId: null,
  ...fields,
});

const firstKeyParts = (event: ServerEvent) => staleQueryKeys(event).map((key) => key[0]);

describe("stale query keys", () => {
  test("a write to an agent makes only that agent's files stale", () => {
    const keys = staleQueryKeys(createEvent({ workspace: { kind: "agent", name: "agt_1" } }));
    expect(keys).toContainEqual(["files", "agent", "agt_1"]);
    expect(keys).not.toContainEqual(["files"]);
  });

  test("a write to a template makes all files and pending reviews stale", () => {
    const keys = firstKeyParts(createEvent({ workspace: { kind: "template", name: "tpl_1" } }));
    expect(keys).toEqual(expect.arrayContaining(["files", "pins", "inbox", "prompt", "impact"]));
  });

  test("a record type without a screen makes nothing stale", () => {
    const unknownRecord = createEvent({
      type: "record.changed",
      payload: { noun: "vault", id: "x" },
    });
    expect(staleQueryKeys(unknownRecord)).toEqual([]);
    const agent = createEvent({ type: "record.changed", payload: { noun: "agent", id: "x" } });
    expect(firstKeyParts(agent)).toContain("agent");
  });
});

describe("debounced invalidation", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("a burst invalidates once, and expensive queries at a limited rate", () => {
    const invalidated: string[] = [];
    const invalidateQueries = vi.fn(
      async ({ queryKey }: { queryKey?: readonly unknown[] } = {}) => {
        invalidated.push(String(queryKey?.[0]));
      },
    );
    const invalidate = debouncedInvalidate({ invalidateQueries } as unknown as Parameters<
      typeof debouncedInvalidate
    >[0]);
    for (let count = 0; count < 50; count += 1) invalidate([["pins"], ["inbox"]]);
    vi.advanceTimersByTime(200);
    expect(invalidated.sort()).toEqual(["inbox", "pins"]);
    invalidate([["pins"], ["inbox"]]);
    vi.advanceTimersByTime(1_000);
    expect(invalidated.filter((word) => word === "pins")).toHaveLength(2);
    expect(invalidated.filter((word) => word === "inbox")).toHaveLength(1);
    vi.advanceTimersByTime(5_000);
    expect(invalidated.filter((word) => word === "inbox")).toHaveLength(2);
  });
});

test("when the stream opens, answers that were loaded before are stale, and requests continue", () => {
  const queries = new QueryClient();
  queries.setQueryData(["agents"], []);
  const queryFn = vi.fn(() => new Promise<never>(() => undefined));
  void queries.fetchQuery({ queryKey: ["inbox"], queryFn });
  invalidateLoaded(queries);
  expect(queries.getQueryState(["agents"])?.isInvalidated).toBe(true);
  expect(queries.getQueryState(["inbox"])?.isInvalidated).toBe(false);
  expect(queryFn).toHaveBeenCalledTimes(1);
});
