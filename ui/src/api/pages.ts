// Lists that are loaded in pages, with the number of all rows from the server.

import { infiniteQueryOptions, type QueryKey } from "@tanstack/react-query";

export interface RowPage<Row> {
  items: Row[];
  next?: string | null;
  /** Number of rows on all pages; on the first page only. */
  total?: number | null;
}

export const PAGE_SIZE = 50;

/** Pages of a list; `fetchPage` gets the cursor of a page, and none for the first. */
export const pagesQuery = <Row>(
  queryKey: QueryKey,
  fetchPage: (cursor: string | undefined) => Promise<RowPage<Row>>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }) => fetchPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
  });
