// File tree: builds the visible lines and handles keyboard navigation.

import type { TreeRow } from "./file-rows";
import { fileName } from "./paths";

export interface TreeLine {
  /** Path of a file, or path of a folder with a trailing /. */
  key: string;
  name: string;
  level: number;
  /** Position among its siblings, from 1. */
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

/** Visible lines, folders first, sorted by name. */
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

/** Rows whose path contains all words of a query, ignoring case and accents. */
export function filterRows(rows: TreeRow[], query: string): TreeRow[] {
  const words = foldText(query).split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter(({ path }) => words.every((word) => foldText(path).includes(word)));
}

/** Index of the line that a key moves to, or the action on the current folder. */
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

/** Index of the next line whose name starts with `typed`, wrapping around. */
export function findByPrefix(lines: TreeLine[], from: number, typed: string): number | null {
  const prefix = foldText(typed);
  const start = typed.length > 1 ? from : from + 1;
  for (let n = 0; n < lines.length; n += 1) {
    const index = (start + n) % lines.length;
    if (foldText(lines[index]?.name ?? "").startsWith(prefix)) return index;
  }
  return null;
}
