// Logic of the file editor: tree, paths, merges, line endings and Markdown chunks.

import { describe, expect, test } from "vitest";
import {
  detectLineEnding,
  normalizeLineEndings,
  restoreLineEndings,
} from "../src/editor/line-endings";
import { linkDefinitions, splitMarkdown } from "../src/editor/markdown-chunks";
import { type TreeRow, treeRows } from "../src/screens/files/file-rows";
import { mergeTexts, mergeWithoutConflict, resolveMerge } from "../src/screens/files/merge";
import { validatePath } from "../src/screens/files/paths";
import { filterRows, findByPrefix, nextLine, treeLines } from "../src/screens/files/tree-model";

const row = (path: string): TreeRow =>
  treeRows({ kind: "workspace", id: "w" }, [
    {
      path,
      class: "live",
      contentType: "text/markdown",
      etag: '"v1"',
      fileId: "f_1",
      sha256: "",
      size: 0,
      overrides: false,
      source: "workspace",
      updateAvailable: false,
      upstream: null,
      updatedAt: "2026-01-01T00:00:00Z",
      version: 1,
    },
  ])[0] as TreeRow;

const rows = ["SOUL.md", "notes/b.md", "notes/a.md", "notes/deep/x.md", "AGENTS.md"].map(row);
const NONE = new Set<string>();

describe("file tree", () => {
  test("lists folders first, sorted by name", () => {
    const keys = treeLines(rows, NONE).map(({ key }) => key);
    expect(keys).toEqual([
      "notes/",
      "notes/deep/",
      "notes/deep/x.md",
      "notes/a.md",
      "notes/b.md",
      "AGENTS.md",
      "SOUL.md",
    ]);
  });

  test("hides collapsed folders and counts siblings", () => {
    const lines = treeLines(rows, new Set(["notes/"]));
    expect(lines.map(({ key, position: at, siblingCount: of }) => [key, at, of])).toEqual([
      ["notes/", 1, 3],
      ["AGENTS.md", 2, 3],
      ["SOUL.md", 3, 3],
    ]);
  });

  test("arrow right enters a folder, arrow left leaves it", () => {
    const lines = treeLines(rows, NONE);
    expect(nextLine(lines, 0, "ArrowRight")).toBe(1);
    expect(nextLine(lines, 0, "ArrowLeft")).toBe("fold");
    expect(nextLine(lines, 4, "ArrowLeft")).toBe(0);
    expect(nextLine(lines, 2, "ArrowLeft")).toBe(1);
    expect(nextLine(lines, 6, "ArrowDown")).toBe(6);
    expect(nextLine(lines, 6, "Home")).toBe(0);
    expect(nextLine(lines, 0, "End")).toBe(6);
    expect(nextLine(treeLines(rows, new Set(["notes/"])), 0, "ArrowRight")).toBe("open");
  });

  test("type-ahead finds the next name and wraps around", () => {
    const lines = treeLines(rows, NONE);
    expect(findByPrefix(lines, 0, "a")).toBe(3);
    expect(findByPrefix(lines, 3, "a")).toBe(5);
    expect(findByPrefix(lines, 5, "a")).toBe(3);
    expect(findByPrefix(lines, 0, "z")).toBeNull();
  });

  test("filters by words, ignoring case and accents", () => {
    expect(filterRows([row("Notes/Élan.md")], "elan notes")).toHaveLength(1);
    expect(filterRows([row("Notes/Élan.md")], "elan soul")).toHaveLength(0);
  });

  test("supports names of object properties", () => {
    const keys = treeLines([row("__proto__/constructor"), row("toString")], NONE);
    expect(keys).toHaveLength(3);
  });
});

describe("path validation", () => {
  test.each(["a.md", "notes/a b.md", "日本/メモ.md", "<script>.md", "a".repeat(255)])(
    "accepts %j",
    (path) => expect(validatePath(path)).toBeNull(),
  );
  const invalidPaths = ["", "/a", "a/", "a//b", "../a", "a/./b", "a\\b", "a\nb", "\ud800"];
  test.each([...invalidPaths, "a".repeat(256), `${"b/".repeat(512)}c`])("rejects %j", (path) =>
    expect(validatePath(path)).not.toBeNull(),
  );
});

describe("merging two edits", () => {
  test("merges edits of different lines", () => {
    expect(mergeWithoutConflict("a\nb\nc", "A\nb\nc", "a\nb\nC")).toBe("A\nb\nC");
  });

  test("merges identical edits", () => {
    expect(mergeWithoutConflict("a\nb\nc", "a\nX\nc", "a\nX\nc")).toBe("a\nX\nc");
  });

  test("conflicts need a choice and lose nothing", () => {
    const parts = mergeTexts("a\nb\nc", "a\nmine\nc", "a\ntheirs\nc");
    expect(resolveMerge(parts, [])).toBeNull();
    expect(resolveMerge(parts, ["mine"])).toBe("a\nmine\nc");
    expect(resolveMerge(parts, ["theirs"])).toBe("a\ntheirs\nc");
    expect(resolveMerge(parts, ["both"])).toBe("a\nmine\ntheirs\nc");
    expect(resolveMerge(parts, [{ manualText: "x\ny" }])).toBe("a\nx\ny\nc");
    expect(resolveMerge(parts, [{ manualText: "" }])).toBe("a\nc");
  });
});

describe("line endings", () => {
  test.each(["a\r\nb\r\n", "a\nb", "a\rb", ""])("are restored: %j", (text) =>
    expect(restoreLineEndings(normalizeLineEndings(text), detectLineEnding(text))).toBe(text),
  );
});

describe("splitting Markdown", () => {
  const chunkTexts = (text: string) => splitMarkdown(text).map((chunk) => chunk.text);
  const paragraph = `${"word ".repeat(100)}\n\n`;
  test("joined chunks equal the text", () => {
    const text = `# One\n\n${paragraph.repeat(40)}\n# Two\n\n${paragraph.repeat(40)}`;
    expect(chunkTexts(text).length).toBeGreaterThan(5);
    expect(chunkTexts(text).join("\n")).toBe(text);
  });

  test("does not split inside a fence or a list", () => {
    const withFence = `${paragraph.repeat(10)}\`\`\`\n# not a heading\n\nstill code\n\`\`\`\n`;
    const chunk = chunkTexts(withFence).find((chunk) => chunk.includes("# not a heading"));
    expect(chunk).toContain("still code");
    const list = `${"- item\n\n".repeat(600)}`;
    expect(chunkTexts(list)).toHaveLength(1);
  });

  test("keeps every chunk small for any input", () => {
    const nestedQuotes = `${"> deep\n".repeat(20_000)}`;
    for (const chunk of chunkTexts(nestedQuotes)) expect(chunk.length).toBeLessThan(20_000);
  });

  test("reuses chunks that an edit did not change", () => {
    const text = `# One\n\n${paragraph.repeat(40)}`;
    const before = splitMarkdown(text);
    const after = splitMarkdown(text.replace("# One", "# Another one\n\nmore"), before);
    expect(after.map((chunk) => chunk.text).join("\n")).toBe(
      text.replace("# One", "# Another one\n\nmore"),
    );
    const previousIds = new Set(before.map(({ id }) => id));
    expect(after.filter(({ id }) => !previousIds.has(id)).length).toBeLessThan(3);
    expect(after.at(-1)).toBe(before.at(-1));
  });

  test("merges chunks that an edit merges", () => {
    const before = splitMarkdown(
      Array.from({ length: 40 }, (_, n) => `${n} ${paragraph}`).join(""),
    );
    const second = before[1]?.text ?? "";
    const editedText = before
      .map((chunk) => chunk.text)
      .join("\n")
      .replace(`\n\n${second}`, ` ${second}`);
    expect(splitMarkdown(editedText, before).map((chunk) => chunk.text)).not.toContain(second);
  });

  test("splits the rest again when an edit opens a fence", () => {
    const text = paragraph.repeat(40);
    const before = splitMarkdown(text);
    const after = splitMarkdown(`\`\`\`\n${text}`, before);
    expect(after.map((chunk) => chunk.text).join("\n")).toBe(`\`\`\`\n${text}`);
    const previousIds = new Set(before.map(({ id }) => id));
    expect(after.some(({ id }) => previousIds.has(id))).toBe(false);
  });

  test("collects link definitions", () => {
    expect(linkDefinitions("see [a]\n\n[a]: https://example.com\n")).toBe(
      "[a]: https://example.com",
    );
  });
});
