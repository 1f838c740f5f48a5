// Records that a picker offers: found by words of their names on the server.

import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

export interface RecordOption {
  id: string;
  name: string;
  /** Tells records of one name apart. */
  detail: string;
}

const PAGE_SIZE = 20;
const page = (q: string) => ({ params: { query: { limit: PAGE_SIZE, ...(q && { q }) } } });
const byId = (id: string) => ({ params: { path: { id } } });

interface Page<Row> {
  items: Row[];
  total: number | null;
}

const optionsOf = <Row extends { id: string; name: string }>(
  kind: string,
  list: (q: string) => Promise<Page<Row>>,
  get: (id: string) => Promise<Row>,
  detailOf: (row: Row) => string,
) => {
  const toOption = (row: Row): RecordOption => ({
    id: row.id,
    name: row.name,
    detail: detailOf(row),
  });
  return {
    search: (q: string) =>
      queryOptions({
        queryKey: [kind, "options", q],
        queryFn: async () => {
          const { items, total } = await list(q);
          return { items: items.map(toOption), total };
        },
        staleTime: 10_000,
      }),
    load: (id: string) =>
      queryOptions({
        queryKey: [kind, "option", id],
        queryFn: async () => toOption(await get(id)),
        staleTime: 60_000,
      }),
  };
};

export const recordOptions = {
  people: optionsOf(
    "people",
    (q) => unwrap(api.GET("/v1/people", page(q))),
    (id) => unwrap(api.GET("/v1/people/{id}", byId(id))),
    ({ email }) => email,
  ),
  templates: optionsOf(
    "templates",
    (q) => unwrap(api.GET("/v1/templates", page(q))),
    (id) => unwrap(api.GET("/v1/templates/{id}", byId(id))),
    ({ slug }) => slug,
  ),
  agents: optionsOf(
    "agents",
    (q) => unwrap(api.GET("/v1/agents", page(q))),
    (id) => unwrap(api.GET("/v1/agents/{id}", byId(id))),
    ({ slug }) => slug,
  ),
};

export type RecordOptions = Pick<typeof recordOptions.people, "load" | "search">;
