// Logic of prompts, runs and transcripts.

import { describe, expect, it } from "vitest";
import type { Block } from "../src/api/prompt";
import type { RunEvent } from "../src/api/runs";
import type { Entry } from "../src/api/transcripts";
import { splitPrompt } from "../src/screens/prompt/block-texts";
import { formatDuration } from "../src/screens/runs/duration";
import { appendEvent } from "../src/screens/runs/use-run-events";
import { collapseIndex } from "../src/screens/sessions/collapse";
import { highlightParts, matchesQuery } from "../src/screens/sessions/highlight";
import { findUnansweredTurns } from "../src/screens/sessions/unanswered-turns";

const block = (name: string, chars: number, kept: Block["kept"] = "kept") =>
  ({ name, path: `${name}.md`, chars, kept }) as Block;

const entriesWithRoles = (...roles: Entry["role"][]) =>
  roles.map((role, timestamp) => ({ number: timestamp + 1, role }) as Entry);

const hits = (text: string, words: string) =>
  highlightParts(text, words)
    .filter(({ isHit }) => isHit)
    .map(({ text }) => text);

describe("splitting a prompt", () => {
  it("counts characters outside the BMP as one", () => {
    const blocks = [block("A", 2), block("B", 0, "left out"), block("C", 3)];
    expect(splitPrompt("🐙a\n\nb🐙c", blocks).map(({ text }) => text)).toEqual(["🐙a", "b🐙c"]);
  });
});

describe("highlighting", () => {
  it("ignores case and accents and keeps the original spelling", () => {
    expect(hits("Señora LÓPEZ wants it", "lopez señ")).toEqual(["Señ", "LÓPEZ"]);
  });
  it("keeps the whole text", () => {
    const text = "I\u0307stanbul, ﬁne, e\u0301t\u00e9 🐙 ete";
    const parts = highlightParts(text, "ete st fi");
    expect(parts.map((part) => part.text).join("")).toBe(text);
  });
  it("requires every word", () => {
    expect(matchesQuery("one two", "TWO one")).toBe(true);
    expect(matchesQuery("one two", "one three")).toBe(false);
  });
});

describe("unanswered turns", () => {
  const unansweredTurns = (roles: Entry["role"][], isOver = false, isShared = false) =>
    Object.fromEntries(
      findUnansweredTurns(entriesWithRoles(...roles), { isClosed: isOver, isShared }),
    );
  it("a turn with an answer is not reported", () => {
    expect(unansweredTurns(["system", "user", "tool", "assistant", "tool"])).toEqual({});
  });
  it("a turn without an answer failed if the user wrote again or the session is closed", () => {
    expect(unansweredTurns(["user", "user", "assistant"])).toEqual({ 1: "failed" });
    expect(unansweredTurns(["user", "tool", "user", "assistant"])).toEqual({ 2: "failed" });
    expect(unansweredTurns(["user"], true)).toEqual({ 1: "failed" });
  });
  it("the last turn of an open session is waiting", () => {
    expect(unansweredTurns(["user", "tool"])).toEqual({ 2: "waiting" });
  });
  it("consecutive users in a shared session are not a failure", () => {
    expect(unansweredTurns(["user", "user", "assistant"], false, true)).toEqual({});
  });
});

describe("collapsing a long entry", () => {
  it("cuts after a number of lines or characters", () => {
    expect(collapseIndex("short", 6)).toBeNull();
    expect(collapseIndex("line\n".repeat(100), 6)).toBe(29);
    expect(collapseIndex("x".repeat(1000), 6)).toBe(480);
  });
});

describe("run log", () => {
  const event = (eventId: string, type: string) => ({ eventId, type }) as RunEvent;
  it("ignores duplicates and ends with the run", () => {
    const events = ["run.started", "run.started", "run.failed"].map((type) => event(type, type));
    const log = events.reduce(appendEvent, { runId: "r", events: [], isLive: true });
    expect(log.events).toHaveLength(2);
    expect(log.isLive).toBe(false);
  });
});

describe("duration", () => {
  it("uses the largest suitable unit", () => {
    const timestamp = (seconds: number) => new Date(seconds * 1000).toISOString();
    const formatted = [1.26, 42, 600, 7200, 864_000].map((seconds) =>
      formatDuration(timestamp(0), timestamp(seconds)),
    );
    expect(formatted).toEqual(["1.3 s", "42 s", "10 min", "2 h", "10 days"]);
  });
});
