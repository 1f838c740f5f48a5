// A table of which only the rows in sight are made. Each row has the same height, so none is
// measured.

import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useEffect, useRef } from "react";
import type { Column, Wanted } from "./agent-filters";
import type { AgentRow } from "./agent-list";
import { AgentTableRow } from "./agent-table-row";

const ROW = 48;

const HEADS: { column: Column; name: string; look: string; firstDown?: boolean }[] = [
  { column: "name", name: "Name", look: "name" },
  { column: "template", name: "Template", look: "only-large" },
  { column: "human", name: "Human", look: "only-large" },
  { column: "overrides", name: "Overrides", look: "number only-large", firstDown: true },
  { column: "updates", name: "Updates", look: "number updates", firstDown: true },
  { column: "run", name: "Last run", look: "run only-large", firstDown: true },
];

interface AgentTableProps {
  rows: readonly AgentRow[];
  wanted: Wanted;
  want: (some: Partial<Wanted>) => void;
}

export function AgentTable({ rows, wanted, want }: AgentTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 10,
    useFlushSync: false,
  });
  useFromTheTop(scroller, wanted);
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const beneath = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
    <div className="agents-scroll" ref={scroller} role="region" aria-label="Agents" tabIndex={0}>
      <table className="table agents-table" aria-rowcount={rows.length + 1} aria-label="Agents">
        <thead>
          <tr aria-rowindex={1}>
            {HEADS.map((head) => (
              <Head key={head.column} {...head} wanted={wanted} want={want} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap height={above} />
          {items.map(({ index }) => {
            const row = rows[index];
            return row && <AgentTableRow key={row.id} row={row} index={index + 2} />;
          })}
          <Gap height={beneath} />
        </tbody>
      </table>
    </div>
  );
}

/** Who sorts or looks for something else begins at the top again. */
function useFromTheTop(scroller: React.RefObject<HTMLDivElement | null>, wanted: Wanted) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the change that counts
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 });
  }, [scroller, wanted]);
}

const Gap = ({ height }: { height: number }) =>
  height > 0 ? (
    <tr aria-hidden className="gap">
      <td colSpan={HEADS.length} style={{ height }} />
    </tr>
  ) : null;

type HeadProps = (typeof HEADS)[number] & Omit<AgentTableProps, "rows">;

function Head({ column, name, look, firstDown = false, wanted, want }: HeadProps) {
  const on = wanted.sort === column;
  const Arrow = wanted.down ? ArrowDown : ArrowUp;
  const order = wanted.down ? "descending" : "ascending";
  return (
    <th scope="col" className={look} aria-sort={on ? order : undefined}>
      <button
        type="button"
        onClick={() => want({ sort: column, down: on ? !wanted.down : firstDown })}
      >
        {name}
        {on && <Arrow size={13} aria-hidden />}
      </button>
    </th>
  );
}
