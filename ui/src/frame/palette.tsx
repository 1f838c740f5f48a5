import { useCallback, useEffect, useState } from "react";
import { Dialog } from "../parts/dialog";

/** Opens by ⌘K or Ctrl-K, wherever one is. */
export function usePalette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOpen(true);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return {
    open,
    show: useCallback(() => setOpen(true), []),
    hide: useCallback(() => setOpen(false), []),
  };
}

export function Palette({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Find anything" onClose={onClose}>
      <p>…</p>
    </Dialog>
  );
}
