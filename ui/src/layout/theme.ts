// Color theme, stored in localStorage.

export type Theme = "light" | "dark" | "system";
const KEY = "carrel-theme";

export const loadTheme = (): Theme => {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
};

export function applyTheme(theme: Theme = loadTheme()): void {
  localStorage.setItem(KEY, theme);
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}
