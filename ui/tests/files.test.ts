// The logic behind the workspace: trees, paths, merges, line ends, and pieces of Markdown.

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
      sha256: "",
      source: "workspace",
      updateAvailable: false,
      updatedAt: "2026-01-01T00:00:00Z",
      version: 1,
    },
  ])[0] as TreeRow;

const rows = ["SOUL.md", "notes/b.md", "notes/a.md", "notes/deep/x.md", "AGENTS.md"].map(row);
const NONE = new Set<string>();

describe("the tree", () => {
  test("has folders first, each in order of name", () => {
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

  test("hides what is in a folded folder, and says who has how many siblings", () => {
    const lines = treeLines(rows, new Set(["notes/"]));
    expect(lines.map(({ key, position: at, siblingCount: of }) => [key, at, of])).toEqual([
      ["notes/", 1, 3],
      ["AGENTS.md", 2, 3],
      ["SOUL.md", 3, 3],
    ]);
  });

  test("is walked by arrows: right goes in, left goes out", () => {
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

  test("jumps to the next name that begins so, round the end", () => {
    const lines = treeLines(rows, NONE);
    expect(findByPrefix(lines, 0, "a")).toBe(3);
    expect(findByPrefix(lines, 3, "a")).toBe(5);
    expect(findByPrefix(lines, 5, "a")).toBe(3);
    expect(findByPrefix(lines, 0, "z")).toBeNull();
  });

  test("is narrowed by words, letter case and accents aside", () => {
    expect(filterRows([row("Notes/Élan.md")], "elan notes")).toHaveLength(1);
    expect(filterRows([row("Notes/Élan.md")], "elan soul")).toHaveLength(0);
  });

  test("holds names that objects have by themselves", () => {
    const keys = treeLines([row("__proto__/constructor"), row("toString")], NONE);
    expect(keys).toHaveLength(3);
  });
});

describe("a path", () => {
  test.each(["a.md", "notes/a b.md", "日本/メモ.md", "<script>.md", "a".repeat(255)])(
    "may be %j",
    (path) => expect(validatePath(path)).toBeNull(),
  );
  const invalidPaths = ["", "/a", "a/", "a//b", "../a", "a/./b", "a\\b", "a\nb", "\ud800"];
  test.each([...invalidPaths, "a".repeat(256), `${"b/".repeat(512)}c`])("may not be %j", (path) =>
    expect(validatePath(path)).not.toBeNull(),
  );
});

describe("two drafts", () => {
  test("are one text where they changed different lines", () => {
    expect(mergeWithoutConflict("a\nb\nc", "A\nb\nc", "a\nb\nC")).toBe("A\nb\nC");
  });

  test("are one text where they changed the same in the same way", () => {
    expect(mergeWithoutConflict("a\nb\nc", "a\nX\nc", "a\nX\nc")).toBe("a\nX\nc");
  });

  test("wait for a choice where they did not, and lose nothing", () => {
    const parts = mergeTexts("a\nb\nc", "a\nmine\nc", "a\ntheirs\nc");
    expect(resolveMerge(parts, [])).toBeNull();
    expect(resolveMerge(parts, ["mine"])).toBe("a\nmine\nc");
    expect(resolveMerge(parts, ["theirs"])).toBe("a\ntheirs\nc");
    expect(resolveMerge(parts, ["both"])).toBe("a\nmine\ntheirs\nc");
    expect(resolveMerge(parts, [{ manualText: "x\ny" }])).toBe("a\nx\ny\nc");
    expect(resolveMerge(parts, [{ manualText: "" }])).toBe("a\nc");
  });
});

describe("line ends", () => {
  test.each(["a\r\nb\r\n", "a\nb", "a\rb", ""])("come back as they were: %j", (text) =>
    expect(restoreLineEndings(normalizeLineEndings(text), detectLineEnding(text))).toBe(text),
  );
});

describe("Markdown in pieces", () => {
  const chunkTexts = (text: string) => splitMarkdown(text).map((chunk) => chunk.text);
  const paragraph = `${"word ".repeat(100)}\n\n`;
  test("is the text again when it is joined", () => {
    const text = `# One\n\n${paragraph.repeat(40)}\n# Two\n\n${paragraph.repeat(40)}`;
    expect(chunkTexts(text).length).toBeGreaterThan(5);
    expect(chunkTexts(text).join("\n")).toBe(text);
  });

  test("is not cut inside a fence or a list", () => {
    const withFence = `${paragraph.repeat(10)}\`\`\`\n# not a heading\n\nstill code\n\`\`\`\n`;
    const chunk = chunkTexts(withFence).find((chunk) => chunk.includes("# not a heading"));
    expect(chunk).toContain("still code");
    const list = `${"- item\n\n".repeat(600)}`;
    expect(chunkTexts(list)).toHaveLength(1);
  });

  test("keeps every piece small, whatever it is given", () => {
    const nestedQuotes = `${"> deep\n".repeat(20_000)}`;
    for (const chunk of chunkTexts(nestedQuotes)) expect(chunk.length).toBeLessThan(20_000);
  });

  test("is the same pieces where an edit left it as it was", () => {
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

  test("joins what an edit joins", () => {
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

  test("reads all that follows anew where an edit opens a fence", () => {
    const text = paragraph.repeat(40);
    const before = splitMarkdown(text);
    const after = splitMarkdown(`\`\`\`\n${text}`, before);
    expect(after.map((chunk) => chunk.text).join("\n")).toBe(`\`\`\`\n${text}`);
    const previousIds = new Set(before.map(({ id }) => id));
    expect(after.some(({ id }) => previousIds.has(id))).toBe(false);
  });

  test("knows the links that are defined elsewhere", () => {
    expect(linkDefinitions("see [a]\n\n[a]: https://example.com\n")).toBe(
      "[a]: https://example.com",
    );
  });
});
