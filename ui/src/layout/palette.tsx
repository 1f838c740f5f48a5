// Command palette: a combobox with a listbox.

import { Search } from "lucide-react";
import { type KeyboardEvent, useCallback, useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { useModal } from "../components/dialog";
import { type PaletteEntry, type PaletteGroup, usePaletteEntries } from "./palette-entries";
import { addRecent } from "./palette-recent";

/** Opens with ⌘K or Ctrl-K on any screen. */
export function usePalette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: globalThis.KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOpen(true);
      }
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
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
  // Not deferred: Enter must act on the entries of the text that was typed.
  const groups = usePaletteEntries(text);
  const entries = groups.flatMap((group) => group.entries);
  const [selectedIndex, setSelectedIndex] = useState(0);
  const activeIndex = Math.min(selectedIndex, Math.max(entries.length - 1, 0));
  const selectEntry = useSelectEntry(onClose);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setSelectedIndex((activeIndex + step + entries.length) % Math.max(entries.length, 1));
    }
    const entry = entries[activeIndex];
    if (event.key === "Enter" && entry && !event.nativeEvent.isComposing) {
      event.preventDefault();
      selectEntry(entry);
    }
  };
  return (
    <dialog
      ref={dialog}
      className="dialog palette"
      aria-label="Search"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === event.currentTarget && onClose()}
      onKeyDown={onKeyDown}
    >
      <div className="palette-input">
        <Search size={17} aria-hidden />
        <input
          role="combobox"
          aria-label="Search agents, files and screens"
          aria-expanded={entries.length > 0}
          aria-controls="palette-list"
          aria-autocomplete="list"
          aria-activedescendant={entries[activeIndex] ? `palette-${activeIndex}` : undefined}
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          placeholder="Search agents, files, screens…"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setSelectedIndex(0);
          }}
        />
        <kbd>Esc</kbd>
      </div>
      <Options
        groups={groups}
        activeIndex={activeIndex}
        onHover={setSelectedIndex}
        onSelect={selectEntry}
      />
      {entries.length === 0 && <p className="palette-empty">No results</p>}
    </dialog>
  );
}

function useSelectEntry(onClose: () => void) {
  const navigate = useNavigate();
  return (entry: PaletteEntry) => {
    onClose();
    entry.run?.();
    if (!entry.to) return;
    addRecent(entry);
    void navigate(entry.to, { state: entry.state });
  };
}

interface OptionsProps {
  groups: PaletteGroup[];
  activeIndex: number;
  onHover: (activeIndex: number) => void;
  onSelect: (entry: PaletteEntry) => void;
}

function Options({ groups, activeIndex, onHover, onSelect }: OptionsProps) {
  useEffect(() => {
    document.getElementById(`palette-${activeIndex}`)?.scrollIntoView({ block: "nearest" });
  }, [activeIndex]);
  let index = -1;
  return (
    <div id="palette-list" className="palette-list" role="listbox" aria-label="Results">
      {groups.map(({ name, entries }) => (
        <div key={name} role="group" aria-label={name}>
          <div className="palette-group" aria-hidden>
            {name}
          </div>
          {entries.map((entry) => {
            index += 1;
            const optionIndex = index;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox handles the keys
              <div
                key={entry.id}
                id={`palette-${optionIndex}`}
                role="option"
                tabIndex={-1}
                aria-selected={optionIndex === activeIndex}
                className="palette-option"
                onPointerMove={() => optionIndex !== activeIndex && onHover(optionIndex)}
                onClick={() => onSelect(entry)}
              >
                <span className="truncate bidi">{entry.label}</span>
                {entry.hint && <span className="faint truncate bidi">{entry.hint}</span>}
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}
