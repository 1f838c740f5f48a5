// Open file and panel, kept in the URL.

import { useCallback } from "react";
import { useSearchParams } from "react-router";

export type PanelName = "history" | "explain";

export function useFileUrl() {
  const [params, setParams] = useSearchParams();
  const panelParam = params.get("panel");
  const openFile = useCallback(
    (path: string | null) =>
      setParams((current) => {
        const next = new URLSearchParams(current);
        if (path === null) next.delete("file");
        else next.set("file", path);
        next.delete("panel");
        return next;
      }),
    [setParams],
  );
  const showPanel = useCallback(
    (panel: PanelName | null) =>
      setParams((current) => {
        const next = new URLSearchParams(current);
        if (panel) next.set("panel", panel);
        else next.delete("panel");
        return next;
      }),
    [setParams],
  );
  const panel: PanelName | null =
    panelParam === "history" || panelParam === "explain" ? panelParam : null;
  return { path: params.get("file"), panel, openFile, showPanel };
}
