// Light, dark, or as the system has it. It is no secret, so it may lie in local storage.

export type Theme = "light" | "dark" | "system";
const KEY = "carrel-theme";

export const theme = (): Theme => {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
};

export function applyTheme(wanted: Theme = theme()): void {
  localStorage.setItem(KEY, wanted);
  if (wanted === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = wanted;
}
