// Names of authors: histories contain only their ids.

import { queryOptions, useQuery } from "@tanstack/react-query";
import { escapeText } from "../components/escape-text";
import { api, fetchAllPages, unwrap } from "./client";

const namesQuery = queryOptions({
  queryKey: ["people", "names"],
  staleTime: 60_000,
  queryFn: async () => {
    const fetchPage = (cursor?: string) =>
      unwrap(api.GET("/v1/people", { params: { query: { limit: 200, cursor } } }));
    return new Map((await fetchAllPages(fetchPage)).map(({ id, name }) => [id, name]));
  },
});

/** Returns a function that maps an author's id to a name, or to the id if it is unknown. */
export function useAuthorNames(): (id: string) => string {
  const { data } = useQuery(namesQuery);
  return (id) => escapeText(data?.get(id) ?? (id || "unknown"), 80);
}
