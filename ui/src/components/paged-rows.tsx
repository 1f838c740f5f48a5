// Rows of a list that is loaded in pages, with how many there are.

import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { PAGE_SIZE, type RowPage } from "../api/pages";
import { Button } from "./button";
import { ErrorNotice, Loading } from "./query-states";

type PagesResult<Row> = UseInfiniteQueryResult<InfiniteData<RowPage<Row>, unknown>>;

export const rowsOf = <Row,>(query: PagesResult<Row>): Row[] =>
  query.data?.pages.flatMap((page) => page.items) ?? [];

interface PagedRowsProps<Row> {
  query: PagesResult<Row>;
  /** Plural of what the rows are. */
  noun: string;
  label?: string;
  children: (rows: Row[]) => ReactNode;
}

/** The loaded rows and a button for more, the loading state, or the error. */
export function PagedRows<Row>({ query, noun, label, children }: PagedRowsProps<Row>) {
  if (query.data) {
    return (
      <>
        {children(rowsOf(query))}
        <MoreRows query={query} noun={noun} />
      </>
    );
  }
  if (query.isError)
    return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading label={label ?? `Loading ${noun}`} />;
}

/** Button that loads the next page, beside the number of rows. */
export const MoreRows = <Row,>({ query, noun }: { query: PagesResult<Row>; noun: string }) => (
  <RowCount
    count={rowsOf(query).length}
    total={query.data?.pages[0]?.total}
    noun={noun}
    busy={query.isFetchingNextPage}
    onMore={query.hasNextPage ? () => void query.fetchNextPage() : undefined}
  />
);

/** Rows that are loaded already, a page at a time, and the button for more. */
export function useShownRows<Row>(rows: readonly Row[], noun: string): [Row[], ReactNode] {
  const [limit, setLimit] = useState(PAGE_SIZE);
  const shown = rows.slice(0, limit);
  const hasMore = shown.length < rows.length;
  return [
    shown,
    <RowCount
      key="count"
      count={shown.length}
      total={rows.length}
      noun={noun}
      onMore={hasMore ? () => setLimit(limit + PAGE_SIZE) : undefined}
    />,
  ];
}

interface RowCountProps {
  count: number;
  total: number | null | undefined;
  noun: string;
  busy?: boolean;
  onMore?: (() => void) | undefined;
}

function RowCount({ count, total, noun, busy = false, onMore }: RowCountProps) {
  if (count < 2) return null;
  return (
    <div className="row wrap">
      {onMore && (
        <Button busy={busy} onClick={onMore}>
          Load more
        </Button>
      )}
      <span className="faint" role="status">
        {count.toLocaleString("en")}
        {typeof total === "number" && ` of ${total.toLocaleString("en")}`} {noun}
      </span>
    </div>
  );
}
