// Virtualized table with rows of fixed height.

import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useEffect, useRef } from "react";
import type { AgentFilters, Column } from "./agent-filters";
import type { AgentRow } from "./agent-list";
import { AgentTableRow } from "./agent-table-row";

const ROW_HEIGHT_PX = 48;

const COLUMN_HEADERS: {
  column: Column;
  name: string;
  className: string;
  descendingFirst?: boolean;
}[] = [
  { column: "name", name: "Name", className: "name" },
  { column: "template", name: "Template", className: "only-large" },
  { column: "human", name: "Human", className: "only-large" },
  { column: "overrides", name: "Overrides", className: "number only-large", descendingFirst: true },
  { column: "updates", name: "Updates", className: "number updates", descendingFirst: true },
  { column: "run", name: "Last run", className: "run only-large", descendingFirst: true },
];

interface AgentTableProps {
  rows: readonly AgentRow[];
  filters: AgentFilters;
  setFilters: (patch: Partial<AgentFilters>) => void;
  selected: ReadonlySet<string>;
  /** Absent if nothing can be selected. */
  onSelect?: ((ids: ReadonlySet<string>) => void) | undefined;
}

export function AgentTable({ rows, filters, setFilters, selected, onSelect }: AgentTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT_PX,
    overscan: 10,
    useFlushSync: false,
  });
  useScrollToTop(scroller, filters);
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
    <div className="agents-scroll" ref={scroller} role="region" aria-label="Agents" tabIndex={0}>
      <table className="table agents-table" aria-rowcount={rows.length + 1} aria-label="Agents">
        <thead>
          <tr aria-rowindex={1}>
            {COLUMN_HEADERS.map((header) => (
              <ColumnHeader
                key={header.column}
                {...header}
                filters={filters}
                setFilters={setFilters}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={above} />
          {items.map(({ index }) => {
            const row = rows[index];
            return (
              row && (
                <AgentTableRow
                  key={row.id}
                  row={row}
                  index={index + 2}
                  isSelected={selected.has(row.id)}
                  onToggle={onSelect && (() => onSelect(toggled(selected, row.id)))}
                />
              )
            );
          })}
          <Spacer height={below} />
        </tbody>
      </table>
    </div>
  );
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const changed = new Set(ids);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

/** Scrolls to the top when filters or sorting change. */
function useScrollToTop(scroller: React.RefObject<HTMLDivElement | null>, filters: AgentFilters) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs on every change of the filters
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 });
  }, [scroller, filters]);
}

const Spacer = ({ height }: { height: number }) =>
  height > 0 ? (
    <tr aria-hidden className="spacer">
      <td colSpan={COLUMN_HEADERS.length} style={{ height }} />
    </tr>
  ) : null;

type ColumnHeaderProps = (typeof COLUMN_HEADERS)[number] &
  Pick<AgentTableProps, "filters" | "setFilters">;

function ColumnHeader({
  column,
  name,
  className,
  descendingFirst = false,
  filters,
  setFilters,
}: ColumnHeaderProps) {
  const isSorted = filters.sort === column;
  const Arrow = filters.descending ? ArrowDown : ArrowUp;
  const order = filters.descending ? "descending" : "ascending";
  return (
    <th scope="col" className={className} aria-sort={isSorted ? order : undefined}>
      <button
        type="button"
        onClick={() =>
          setFilters({ sort: column, descending: isSorted ? !filters.descending : descendingFirst })
        }
      >
        {name}
        {isSorted && <Arrow size={13} aria-hidden />}
      </button>
    </th>
  );
}
