// List of keyboard shortcuts, opened with a question mark.

import { useCallback, useEffect, useState } from "react";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";

const SHORTCUTS: { place: string; keys: [string, string][] }[] = [
  {
    place: "Everywhere",
    keys: [
      ["⌘K or Ctrl K", "Search agents, templates, files and sessions"],
      ["?", "List the shortcuts"],
      ["Esc", "Close a dialog"],
    ],
  },
  {
    place: "Files and items",
    keys: [
      ["⌘S or Ctrl S", "Save"],
      ["↑ ↓", "Move in the file tree"],
      ["← →", "Close or open a folder"],
      ["Enter", "Open the file"],
      ["a letter", "Go to the next name that begins with it"],
    ],
  },
];

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** Opens with ? outside of text fields and dialogs. */
export function useShortcuts() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== "?" || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.defaultPrevented || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  return { open, hide: useCallback(() => setOpen(false), []) };
}

export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title="Keyboard shortcuts"
      onClose={onClose}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      {SHORTCUTS.map(({ place, keys }) => (
        <section key={place} className="stack tight">
          <h3>{place}</h3>
          <dl className="property-list">
            {keys.map(([key, action]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{action}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
