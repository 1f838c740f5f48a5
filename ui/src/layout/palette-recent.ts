// Recently opened palette entries, newest first, kept per browser tab.

import type { PaletteEntry } from "./palette-entries";

const KEY = "carrel-recent";
const MAX_RECENT = 6;
type RecentEntry = Pick<PaletteEntry, "label" | "to" | "hint">;

export function loadRecent(): RecentEntry[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored : [];
  } catch {
    return [];
  }
}

export function addRecent({ label, to, hint }: PaletteEntry): void {
  if (!to) return;
  const others = loadRecent().filter((entry) => entry.to !== to);
  sessionStorage.setItem(
    KEY,
    JSON.stringify([{ label, to, hint }, ...others].slice(0, MAX_RECENT)),
  );
}
