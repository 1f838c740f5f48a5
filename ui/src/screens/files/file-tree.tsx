// The tree of files, for the mouse and for the keyboard.

import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight, Folder } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { plain } from "../../components/escape-text";
import type { Row } from "./file-rows";
import { Sign, wordsOf } from "./file-status";
import { found, type Line, linesOf, step } from "./tree-model";

const MANY = 500;
const HIGH = 30;

interface TreeProps {
  label: string;
  rows: Row[];
  selected: string | null;
  onOpen: (path: string) => void;
  /** What comes from the defaults says so in words. */
  badged?: boolean;
  /** Nothing is folded away, since what is shown was searched for. */
  unfolded?: boolean;
}

const NONE: ReadonlySet<string> = new Set();

export function Tree({ label, rows, selected, onOpen, badged, unfolded }: TreeProps) {
  const [folded, setFolded] = useState(NONE);
  const [focused, setFocused] = useState<string | null>(null);
  const room = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => linesOf(rows, unfolded ? NONE : folded), [rows, folded, unfolded]);
  const fold = (key: string, away: boolean) => {
    const next = new Set(folded);
    if (away) next.add(key);
    else next.delete(key);
    setFolded(next);
  };
  const current = Math.max(
    0,
    lines.findIndex(({ key }) => key === (focused ?? selected)),
  );
  const press = (line: Line) => (line.row ? onOpen(line.key) : fold(line.key, line.open));
  const lettered = useLetters();
  const move = (at: number) => {
    setFocused(lines[at]?.key ?? null);
    reach.current = true;
  };
  const reach = useRef(false);
  const keyed = (event: KeyboardEvent) => {
    const line = lines[current];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const led = step(lines, current, event.key);
    if (event.key === "Enter" || event.key === " ") press(line);
    else if (typeof led === "number") move(led);
    else if (led) fold(line.key, led === "fold");
    else if (event.key.length === 1) {
      const at = found(lines, current, lettered(event.key));
      if (at === null) return;
      move(at);
    } else return;
    event.preventDefault();
  };
  const many = lines.length > MANY;
  const window = useVirtualizer({
    count: lines.length,
    getScrollElement: () => room.current,
    estimateSize: () => HIGH,
    overscan: 12,
    enabled: many,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a step of the keyboard moves the focus
  useEffect(() => {
    if (!reach.current) return;
    reach.current = false;
    if (many) window.scrollToIndex(current);
    const focus = () => room.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
    if (many) requestAnimationFrame(focus);
    else focus();
  }, [focused]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: where the selected file stands, once it is known
  useEffect(() => {
    const at = lines.findIndex(({ key }) => key === selected);
    if (at >= 0 && many) window.scrollToIndex(at);
    else
      room.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [selected, lines.length > 0]);
  const shown = many ? window.getVirtualItems() : lines.map((_, index) => ({ index, start: null }));
  return (
    <div className="tree" ref={room}>
      <div
        role="tree"
        aria-label={label}
        onKeyDown={keyed}
        style={many ? { height: window.getTotalSize() } : undefined}
      >
        {shown.map(({ index, start }) => {
          const line = lines[index] as Line;
          return (
            <TreeLine
              key={line.key}
              line={line}
              badged={badged ?? false}
              start={start}
              isSelected={line.key === selected}
              isCurrent={index === current}
              onPress={() => {
                setFocused(line.key);
                press(line);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

interface TreeLineProps {
  line: Line;
  badged: boolean;
  start: number | null;
  isSelected: boolean;
  isCurrent: boolean;
  onPress: () => void;
}

function TreeLine({ line, badged, start, isSelected, isCurrent, onPress }: TreeLineProps) {
  const { row, level, at, of, open } = line;
  const muted = row?.inherited ? "muted" : "";
  const indent = { "--level": level - 1, ...(start !== null && { top: start }) };
  const words = row ? wordsOf(row) : undefined;
  const borrowed = row?.inherited && row.file.source === "defaults" && badged;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree hears the keys for all of its items
    <div
      role="treeitem"
      aria-level={level}
      aria-posinset={at}
      aria-setsize={of}
      aria-expanded={row ? undefined : open}
      aria-selected={isSelected}
      aria-label={row ? `${plain(line.name, 120)}, ${words}` : plain(line.name, 120)}
      tabIndex={isCurrent ? 0 : -1}
      className={`tree-line ${muted} ${borrowed ? "borrowed" : ""} ${start === null ? "" : "placed"}`}
      style={indent as React.CSSProperties}
      title={row ? `${plain(row.path, 300)}\n${words}` : plain(line.key, 300)}
      onClick={onPress}
    >
      {row ? <span className="fold" /> : <Fold open={open} />}
      {row ? <Sign standing={row.standing} /> : <Folder size={14} aria-hidden className="faint" />}
      <span className="cut bidi">{plain(line.name, 120)}</span>
    </div>
  );
}

const Fold = ({ open }: { open: boolean }) => (
  <span className="fold">
    {open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
  </span>
);

/** Letters that are typed one soon after another make a word. */
function useLetters() {
  const typed = useRef({ word: "", at: 0 });
  return (letter: string) => {
    const soon = performance.now() - typed.current.at < 600;
    typed.current = { word: soon ? typed.current.word + letter : letter, at: performance.now() };
    return typed.current.word;
  };
}
