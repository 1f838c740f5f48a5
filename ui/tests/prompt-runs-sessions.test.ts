// The pure logic behind prompts, runs and transcripts.

import { describe, expect, it } from "vitest";
import type { Block } from "../src/api/prompt";
import type { RunEvent } from "../src/api/runs";
import type { Entry } from "../src/api/transcripts";
import { piecesOf } from "../src/screens/prompt/block-texts";
import { lasted } from "../src/screens/runs/duration";
import { heard } from "../src/screens/runs/use-run-events";
import { foldedAt } from "../src/screens/sessions/collapse";
import { partsOf, says } from "../src/screens/sessions/highlight";
import { unansweredOf } from "../src/screens/sessions/unanswered-turns";

const block = (name: string, chars: number, kept: Block["kept"] = "kept") =>
  ({ name, path: `${name}.md`, chars, kept }) as Block;

const talk = (...roles: Entry["role"][]) =>
  roles.map((role, at) => ({ number: at + 1, role }) as Entry);

const hits = (text: string, words: string) =>
  partsOf(text, words)
    .filter(({ isHit }) => isHit)
    .map(({ text }) => text);

describe("a prompt in pieces", () => {
  it("counts characters beyond the first plane as one", () => {
    const blocks = [block("A", 2), block("B", 0, "left out"), block("C", 3)];
    expect(piecesOf("🐙a\n\nb🐙c", blocks).map(({ text }) => text)).toEqual(["🐙a", "b🐙c"]);
  });
});

describe("words in a text", () => {
  it("are found letter case and accents aside, and marked as they are written", () => {
    expect(hits("Señora LÓPEZ wants it", "lopez señ")).toEqual(["Señ", "LÓPEZ"]);
  });
  it("leave the text whole", () => {
    const text = "I\u0307stanbul, ﬁne, e\u0301t\u00e9 🐙 ete";
    const parts = partsOf(text, "ete st fi");
    expect(parts.map((part) => part.text).join("")).toBe(text);
  });
  it("must all stand there", () => {
    expect(says("one two", "TWO one")).toBe(true);
    expect(says("one two", "one three")).toBe(false);
  });
});

describe("a turn", () => {
  const all = (roles: Entry["role"][], isOver = false, isShared = false) =>
    Object.fromEntries(unansweredOf(talk(...roles), { isOver, isShared }));
  it("that has an answer is none to speak of", () => {
    expect(all(["system", "user", "tool", "assistant", "tool"])).toEqual({});
  });
  it("without one failed if somebody spoke again, or the session is closed", () => {
    expect(all(["user", "user", "assistant"])).toEqual({ 1: "failed" });
    expect(all(["user", "tool", "user", "assistant"])).toEqual({ 2: "failed" });
    expect(all(["user"], true)).toEqual({ 1: "failed" });
  });
  it("may still wait for it", () => {
    expect(all(["user", "tool"])).toEqual({ 2: "waiting" });
  });
  it("of several people is not failed because two of them speak", () => {
    expect(all(["user", "user", "assistant"], false, true)).toEqual({});
  });
});

describe("a long entry", () => {
  it("is folded after so many lines, or as much text", () => {
    expect(foldedAt("short", 6)).toBeNull();
    expect(foldedAt("line\n".repeat(100), 6)).toBe(29);
    expect(foldedAt("x".repeat(1000), 6)).toBe(480);
  });
});

describe("the log of a run", () => {
  const event = (eventId: string, type: string) => ({ eventId, type }) as RunEvent;
  it("tells nothing twice and ends when the run does", () => {
    const told = ["run.started", "run.started", "run.failed"].map((type) => event(type, type));
    const log = told.reduce(heard, { runId: "r", events: [], isLive: true });
    expect(log.events).toHaveLength(2);
    expect(log.isLive).toBe(false);
  });
});

describe("how long it took", () => {
  it("is said as short as can be", () => {
    const at = (seconds: number) => new Date(seconds * 1000).toISOString();
    const said = [1.26, 42, 600, 7200, 864_000].map((seconds) => lasted(at(0), at(seconds)));
    expect(said).toEqual(["1.3 s", "42 s", "10 min", "2 h", "10 days"]);
  });
});
