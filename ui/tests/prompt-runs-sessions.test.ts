// The pure logic behind prompts, runs and transcripts.

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

describe("a prompt in pieces", () => {
  it("counts characters beyond the first plane as one", () => {
    const blocks = [block("A", 2), block("B", 0, "left out"), block("C", 3)];
    expect(splitPrompt("🐙a\n\nb🐙c", blocks).map(({ text }) => text)).toEqual(["🐙a", "b🐙c"]);
  });
});

describe("words in a text", () => {
  it("are found letter case and accents aside, and marked as they are written", () => {
    expect(hits("Señora LÓPEZ wants it", "lopez señ")).toEqual(["Señ", "LÓPEZ"]);
  });
  it("leave the text whole", () => {
    const text = "I\u0307stanbul, ﬁne, e\u0301t\u00e9 🐙 ete";
    const parts = highlightParts(text, "ete st fi");
    expect(parts.map((part) => part.text).join("")).toBe(text);
  });
  it("must all stand there", () => {
    expect(matchesQuery("one two", "TWO one")).toBe(true);
    expect(matchesQuery("one two", "one three")).toBe(false);
  });
});

describe("a turn", () => {
  const unansweredTurns = (roles: Entry["role"][], isOver = false, isShared = false) =>
    Object.fromEntries(
      findUnansweredTurns(entriesWithRoles(...roles), { isClosed: isOver, isShared }),
    );
  it("that has an answer is none to speak of", () => {
    expect(unansweredTurns(["system", "user", "tool", "assistant", "tool"])).toEqual({});
  });
  it("without one failed if somebody spoke again, or the session is closed", () => {
    expect(unansweredTurns(["user", "user", "assistant"])).toEqual({ 1: "failed" });
    expect(unansweredTurns(["user", "tool", "user", "assistant"])).toEqual({ 2: "failed" });
    expect(unansweredTurns(["user"], true)).toEqual({ 1: "failed" });
  });
  it("may still wait for it", () => {
    expect(unansweredTurns(["user", "tool"])).toEqual({ 2: "waiting" });
  });
  it("of several people is not failed because two of them speak", () => {
    expect(unansweredTurns(["user", "user", "assistant"], false, true)).toEqual({});
  });
});

describe("a long entry", () => {
  it("is folded after so many lines, or as much text", () => {
    expect(collapseIndex("short", 6)).toBeNull();
    expect(collapseIndex("line\n".repeat(100), 6)).toBe(29);
    expect(collapseIndex("x".repeat(1000), 6)).toBe(480);
  });
});

describe("the log of a run", () => {
  const event = (eventId: string, type: string) => ({ eventId, type }) as RunEvent;
  it("tells nothing twice and ends when the run does", () => {
    const events = ["run.started", "run.started", "run.failed"].map((type) => event(type, type));
    const log = events.reduce(appendEvent, { runId: "r", events: [], isLive: true });
    expect(log.events).toHaveLength(2);
    expect(log.isLive).toBe(false);
  });
});

describe("how long it took", () => {
  it("is said as short as can be", () => {
    const timestamp = (seconds: number) => new Date(seconds * 1000).toISOString();
    const formatted = [1.26, 42, 600, 7200, 864_000].map((seconds) =>
      formatDuration(timestamp(0), timestamp(seconds)),
    );
    expect(formatted).toEqual(["1.3 s", "42 s", "10 min", "2 h", "10 days"]);
  });
});
