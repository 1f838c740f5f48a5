// The palette: everything is a few letters away. A combobox over a listbox, for all who read it.

import { Search } from "lucide-react";
import { type KeyboardEvent, useCallback, useDeferredValue, useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { useModal } from "../components/dialog";
import { type Entry, type Group, useEntries } from "./palette-entries";
import { remember } from "./palette-recent";

/** Opens by ⌘K or Ctrl-K, wherever one is. */
export function usePalette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
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
  const dialog = useModal();
  const [text, setText] = useState("");
  const groups = useEntries(useDeferredValue(text));
  const entries = groups.flatMap((group) => group.entries);
  const [wanted, setWanted] = useState(0);
  const at = Math.min(wanted, Math.max(entries.length - 1, 0));
  const choose = useChoice(onClose);
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setWanted((at + step + entries.length) % Math.max(entries.length, 1));
    }
    const entry = entries[at];
    if (event.key === "Enter" && entry && !event.nativeEvent.isComposing) {
      event.preventDefault();
      choose(entry);
    }
  };
  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Find anything"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === event.currentTarget && onClose()}
      onKeyDown={press}
    >
      <div className="palette-input">
        <Search size={17} aria-hidden />
        <input
          role="combobox"
          aria-label="Find agents, files, screens and texts"
          aria-expanded={entries.length > 0}
          aria-controls="palette-list"
          aria-autocomplete="list"
          aria-activedescendant={entries[at] ? `palette-${at}` : undefined}
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          placeholder="Agents, files, screens, texts…"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setWanted(0);
          }}
        />
        <kbd>Esc</kbd>
      </div>
      <Options groups={groups} at={at} onPoint={setWanted} onChoose={choose} />
      {entries.length === 0 && <p className="palette-none">Nothing is called so.</p>}
    </dialog>
  );
}

function useChoice(onClose: () => void) {
  const go = useNavigate();
  return (entry: Entry) => {
    onClose();
    entry.act?.();
    if (!entry.to) return;
    remember(entry);
    void go(entry.to, { state: entry.state });
  };
}

interface OptionsProps {
  groups: Group[];
  at: number;
  onPoint: (at: number) => void;
  onChoose: (entry: Entry) => void;
}

function Options({ groups, at, onPoint, onChoose }: OptionsProps) {
  useEffect(() => {
    document.getElementById(`palette-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at]);
  let index = -1;
  return (
    <div id="palette-list" className="palette-list" role="listbox" aria-label="Found">
      {groups.map(({ name, entries }) => (
        <div key={name} role="group" aria-label={name}>
          <div className="palette-group" aria-hidden>
            {name}
          </div>
          {entries.map((entry) => {
            index += 1;
            const mine = index;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above has the keys
              <div
                key={entry.id}
                id={`palette-${mine}`}
                role="option"
                tabIndex={-1}
                aria-selected={mine === at}
                className="palette-option"
                onPointerMove={() => mine !== at && onPoint(mine)}
                onClick={() => onChoose(entry)}
              >
                <span className="cut bidi">{entry.label}</span>
                {entry.hint && <span className="faint cut bidi">{entry.hint}</span>}
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}
