// Where one went by the palette, newest first, for as long as the tab is open.

import type { Entry } from "./palette-entries";

const KEY = "carrel-recent";
const MOST = 6;
type Kept = Pick<Entry, "label" | "to" | "hint">;

export function recent(): Kept[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

export function remember({ label, to, hint }: Entry): void {
  if (!to) return;
  const others = recent().filter((each) => each.to !== to);
  sessionStorage.setItem(KEY, JSON.stringify([{ label, to, hint }, ...others].slice(0, MOST)));
}
