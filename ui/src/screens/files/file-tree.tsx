// File tree with keyboard navigation; virtualized above 500 lines.

import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight, Folder } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { escapeText } from "../../components/escape-text";
import type { TreeRow } from "./file-rows";
import { StatusIcon, statusLabel } from "./file-status";
import { findByPrefix, nextLine, type TreeLine, treeLines } from "./tree-model";

const VIRTUALIZE_ABOVE = 500;
const ROW_HEIGHT_PX = 30;

interface FileTreeProps {
  label: string;
  rows: TreeRow[];
  selected: string | null;
  onOpen: (path: string) => void;
  /** Shows a badge on files of the defaults. */
  showDefaultsBadge?: boolean;
  /** Expands all folders, for filtered trees. */
  expandAll?: boolean;
}

const NONE_COLLAPSED: ReadonlySet<string> = new Set();

export function FileTree({
  label,
  rows,
  selected,
  onOpen,
  showDefaultsBadge,
  expandAll,
}: FileTreeProps) {
  const [collapsed, setCollapsed] = useState(NONE_COLLAPSED);
  const [focused, setFocused] = useState<string | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const lines = useMemo(
    () => treeLines(rows, expandAll ? NONE_COLLAPSED : collapsed),
    [rows, collapsed, expandAll],
  );
  const setFolder = (key: string, isCollapsed: boolean) => {
    const next = new Set(collapsed);
    if (isCollapsed) next.add(key);
    else next.delete(key);
    setCollapsed(next);
  };
  const current = Math.max(
    0,
    lines.findIndex(({ key }) => key === (focused ?? selected)),
  );
  const activate = (line: TreeLine) =>
    line.row ? onOpen(line.key) : setFolder(line.key, line.open);
  const typeAhead = useTypeAhead();
  const move = (position: number) => {
    setFocused(lines[position]?.key ?? null);
    moveFocus.current = true;
  };
  const moveFocus = useRef(false);
  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[current];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = nextLine(lines, current, event.key);
    if (event.key === "Enter" || event.key === " ") activate(line);
    else if (typeof target === "number") move(target);
    else if (target) setFolder(line.key, target === "fold");
    else if (event.key.length === 1) {
      const position = findByPrefix(lines, current, typeAhead(event.key));
      if (position === null) return;
      move(position);
    } else return;
    event.preventDefault();
  };
  const isVirtual = lines.length > VIRTUALIZE_ABOVE;
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT_PX,
    overscan: 12,
    enabled: isVirtual,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only keyboard navigation moves the focus
  useEffect(() => {
    if (!moveFocus.current) return;
    moveFocus.current = false;
    if (isVirtual) virtualizer.scrollToIndex(current);
    const focus = () => scroller.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
    if (isVirtual) requestAnimationFrame(focus);
    else focus();
  }, [focused]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when the selection or the first lines arrive
  useEffect(() => {
    const position = lines.findIndex(({ key }) => key === selected);
    if (position >= 0 && isVirtual) virtualizer.scrollToIndex(position);
    else
      scroller.current
        ?.querySelector('[aria-selected="true"]')
        ?.scrollIntoView({ block: "nearest" });
  }, [selected, lines.length > 0]);
  const items = isVirtual
    ? virtualizer.getVirtualItems()
    : lines.map((_, index) => ({ index, start: null }));
  return (
    <div className="tree" ref={scroller}>
      <div
        role="tree"
        aria-label={label}
        onKeyDown={onKeyDown}
        style={isVirtual ? { height: virtualizer.getTotalSize() } : undefined}
      >
        {items.map(({ index, start }) => {
          const line = lines[index] as TreeLine;
          return (
            <TreeItem
              key={line.key}
              line={line}
              showDefaultsBadge={showDefaultsBadge ?? false}
              start={start}
              isSelected={line.key === selected}
              isCurrent={index === current}
              onActivate={() => {
                setFocused(line.key);
                activate(line);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

interface TreeItemProps {
  line: TreeLine;
  showDefaultsBadge: boolean;
  start: number | null;
  isSelected: boolean;
  isCurrent: boolean;
  onActivate: () => void;
}

function TreeItem({
  line,
  showDefaultsBadge,
  start,
  isSelected,
  isCurrent,
  onActivate,
}: TreeItemProps) {
  const { row, level, position, siblingCount, open } = line;
  const mutedClass = row?.inherited ? "muted" : "";
  const indent = { "--level": level - 1, ...(start !== null && { top: start }) };
  const label = row ? statusLabel(row) : undefined;
  const isFromDefaults = row?.inherited && row.file.source === "defaults" && showDefaultsBadge;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys of its items
    <div
      role="treeitem"
      aria-level={level}
      aria-posinset={position}
      aria-setsize={siblingCount}
      aria-expanded={row ? undefined : open}
      aria-selected={isSelected}
      aria-label={row ? `${escapeText(line.name, 120)}, ${label}` : escapeText(line.name, 120)}
      tabIndex={isCurrent ? 0 : -1}
      className={`tree-line ${mutedClass} ${start === null ? "" : "positioned"}`}
      style={indent as React.CSSProperties}
      title={row ? `${escapeText(row.path, 300)}\n${label}` : escapeText(line.key, 300)}
      onClick={onActivate}
    >
      {row ? <span className="fold" /> : <FoldIcon open={open} />}
      {!row && <Folder size={14} aria-hidden className="faint" />}
      <span className="grow truncate bidi">{escapeText(line.name, 120)}</span>
      {isFromDefaults && <span className="badge defaults-mark" />}
      {row?.status === "update" && row.file.overrides && <StatusIcon status="override" />}
      {row && <StatusIcon status={row.status} />}
    </div>
  );
}

const FoldIcon = ({ open }: { open: boolean }) => (
  <span className="fold">
    {open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
  </span>
);

/** Joins letters typed within 600 ms to a word. */
function useTypeAhead() {
  const buffer = useRef({ word: "", at: 0 });
  return (letter: string) => {
    const continues = performance.now() - buffer.current.at < 600;
    buffer.current = {
      word: continues ? buffer.current.word + letter : letter,
      at: performance.now(),
    };
    return buffer.current.word;
  };
}
