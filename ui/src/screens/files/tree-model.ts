// Paths as a tree, and the tree as the lines that are to be seen of it.

import type { Row } from "./file-rows";
import { nameOf } from "./paths";

export interface Line {
  /** The path of a file, or of a folder with a / behind it. */
  key: string;
  name: string;
  level: number;
  /** Place among its siblings from 1, and how many they are. */
  at: number;
  of: number;
  row: Row | null;
  open: boolean;
}

interface Folder {
  folders: Map<string, Folder>;
  rows: Row[];
}

const empty = (): Folder => ({ folders: new Map(), rows: [] });
const inOrder = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;

function grow(rows: Row[]): Folder {
  const root = empty();
  for (const row of rows) {
    let folder = root;
    for (const part of row.path.split("/").slice(0, -1)) {
      const inner = folder.folders.get(part) ?? empty();
      folder.folders.set(part, inner);
      folder = inner;
    }
    folder.rows.push(row);
  }
  return root;
}

/** Every line that is to be seen, folders first, each in order of name. */
export function linesOf(rows: Row[], folded: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  const walk = (folder: Folder, above: string, level: number) => {
    const folders = [...folder.folders].sort(([one], [other]) => inOrder(one, other));
    const files = folder.rows.toSorted((one, other) => inOrder(one.path, other.path));
    const of = folders.length + files.length;
    let at = 0;
    for (const [name, inner] of folders) {
      at += 1;
      const key = `${above}${name}/`;
      const open = !folded.has(key);
      lines.push({ key, name, level, at, of, row: null, open });
      if (open) walk(inner, key, level + 1);
    }
    for (const row of files) {
      at += 1;
      lines.push({ key: row.path, name: nameOf(row.path), level, at, of, row, open: false });
    }
  };
  walk(grow(rows), "", 1);
  return lines;
}

const bare = (text: string) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Those whose path has all the words, letter case and accents aside. */
export function matching(rows: Row[], asked: string): Row[] {
  const words = bare(asked).split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter(({ path }) => words.every((word) => bare(path).includes(word)));
}

/** Where a key of the keyboard leads from a line; a word for what it does to the line itself. */
export function step(lines: Line[], at: number, key: string): number | "open" | "fold" | null {
  const line = lines[at];
  if (!line) return lines.length ? 0 : null;
  if (key === "ArrowDown") return Math.min(at + 1, lines.length - 1);
  if (key === "ArrowUp") return Math.max(at - 1, 0);
  if (key === "Home") return 0;
  if (key === "End") return lines.length - 1;
  if (key === "ArrowRight") return line.row ? null : line.open ? at + 1 : "open";
  if (key !== "ArrowLeft") return null;
  if (!line.row && line.open) return "fold";
  const above = lines.slice(0, at).findLastIndex(({ level }) => level < line.level);
  return above < 0 ? null : above;
}

/** The next line from here whose name begins so, round the end. */
export function found(lines: Line[], from: number, begins: string): number | null {
  const asked = bare(begins);
  const start = begins.length > 1 ? from : from + 1;
  for (let n = 0; n < lines.length; n += 1) {
    const at = (start + n) % lines.length;
    if (bare(lines[at]?.name ?? "").startsWith(asked)) return at;
  }
  return null;
}
