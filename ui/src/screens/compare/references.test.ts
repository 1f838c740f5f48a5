import { expect, test } from "vitest";
import {
  compareUrl,
  formatReference,
  fromLocalInput,
  parseReference,
  toLocalInput,
} from "./references";

test.each([
  "agent:ada",
  "agent:ada@2026-11-01T00:00:00Z",
  "defaults",
  "defaults/notes/a.md",
  "template:support/SOUL.md@v3",
  "run:run_1/SOUL.md",
  "workspace:ws_1",
  "template:support/a@v3@now",
])("%s survives the form", (text) => {
  expect(formatReference(parseReference(text))).toBe(text);
});

test("a path that ends like a version is kept apart from one", () => {
  const path = { kind: "template", name: "s", path: "a@v3", moment: "" } as const;
  expect(formatReference(path)).toBe("template:s/a@v3@now");
});

test("a local time and back", () => {
  expect(fromLocalInput(toLocalInput("2026-11-01T10:30:00Z"))).toBe("2026-11-01T10:30:00Z");
  expect(toLocalInput("v3")).toBe("");
});

test("urls are encoded", () => {
  expect(compareUrl("agent:ada", "run:r/a b.md")).toBe(
    "/compare?left=agent%3Aada&right=run%3Ar%2Fa+b.md",
  );
});
