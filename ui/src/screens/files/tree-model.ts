// Paths as a tree, and the tree as the lines that are to be seen of it.

import type { TreeRow } from "./file-rows";
import { fileName } from "./paths";

export interface TreeLine {
  /** The path of a file, or of a folder with a / behind it. */
  key: string;
  name: string;
  level: number;
  /** Place among its siblings from 1, and how many they are. */
  position: number;
  siblingCount: number;
  row: TreeRow | null;
  open: boolean;
}

interface Folder {
  folders: Map<string, Folder>;
  rows: TreeRow[];
}

const emptyFolder = (): Folder => ({ folders: new Map(), rows: [] });
const compareNames = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;

function buildFolders(rows: TreeRow[]): Folder {
  const root = emptyFolder();
  for (const row of rows) {
    let folder = root;
    for (const part of row.path.split("/").slice(0, -1)) {
      const inner = folder.folders.get(part) ?? emptyFolder();
      folder.folders.set(part, inner);
      folder = inner;
    }
    folder.rows.push(row);
  }
  return root;
}

/** Every line that is to be seen, folders first, each in order of name. */
export function treeLines(rows: TreeRow[], collapsed: ReadonlySet<string>): TreeLine[] {
  const lines: TreeLine[] = [];
  const walk = (folder: Folder, parentKey: string, level: number) => {
    const folders = [...folder.folders].sort(([a], [b]) => compareNames(a, b));
    const files = folder.rows.toSorted((a, b) => compareNames(a.path, b.path));
    const siblingCount = folders.length + files.length;
    let position = 0;
    for (const [name, inner] of folders) {
      position += 1;
      const key = `${parentKey}${name}/`;
      const open = !collapsed.has(key);
      lines.push({ key, name, level, position, siblingCount, row: null, open });
      if (open) walk(inner, key, level + 1);
    }
    for (const row of files) {
      position += 1;
      lines.push({
        key: row.path,
        name: fileName(row.path),
        level,
        position,
        siblingCount,
        row,
        open: false,
      });
    }
  };
  walk(buildFolders(rows), "", 1);
  return lines;
}

const foldText = (text: string) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Those whose path has all the words, letter case and accents aside. */
export function filterRows(rows: TreeRow[], query: string): TreeRow[] {
  const words = foldText(query).split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter(({ path }) => words.every((word) => foldText(path).includes(word)));
}

/** Where a key of the keyboard leads from a line; a word for what it does to the line itself. */
export function nextLine(
  lines: TreeLine[],
  current: number,
  key: string,
): number | "open" | "fold" | null {
  const line = lines[current];
  if (!line) return lines.length ? 0 : null;
  if (key === "ArrowDown") return Math.min(current + 1, lines.length - 1);
  if (key === "ArrowUp") return Math.max(current - 1, 0);
  if (key === "Home") return 0;
  if (key === "End") return lines.length - 1;
  if (key === "ArrowRight") return line.row ? null : line.open ? current + 1 : "open";
  if (key !== "ArrowLeft") return null;
  if (!line.row && line.open) return "fold";
  const parentKey = lines.slice(0, current).findLastIndex(({ level }) => level < line.level);
  return parentKey < 0 ? null : parentKey;
}

/** The next line from here whose name begins so, round the end. */
export function findByPrefix(lines: TreeLine[], from: number, typed: string): number | null {
  const prefix = foldText(typed);
  const start = typed.length > 1 ? from : from + 1;
  for (let n = 0; n < lines.length; n += 1) {
    const index = (start + n) % lines.length;
    if (foldText(lines[index]?.name ?? "").startsWith(prefix)) return index;
  }
  return null;
}
