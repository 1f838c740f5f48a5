// What is open stands in the address: the file, and the panel beside it.

import { useCallback } from "react";
import { useSearchParams } from "react-router";

export type PanelName = "history" | "explain";

export function useOpened() {
  const [asked, ask] = useSearchParams();
  const given = asked.get("panel");
  const open = useCallback(
    (path: string | null) =>
      ask((now) => {
        const next = new URLSearchParams(now);
        if (path === null) next.delete("file");
        else next.set("file", path);
        next.delete("panel");
        return next;
      }),
    [ask],
  );
  const show = useCallback(
    (panel: PanelName | null) =>
      ask((now) => {
        const next = new URLSearchParams(now);
        if (panel) next.set("panel", panel);
        else next.delete("panel");
        return next;
      }),
    [ask],
  );
  const panel: PanelName | null = given === "history" || given === "explain" ? given : null;
  return { path: asked.get("file"), panel, open, show };
}
