// Who wrote something, in words: histories name their authors by id.

import { queryOptions, useQuery } from "@tanstack/react-query";
import { plain } from "../components/escape-text";
import { all, api, take } from "./client";

const namesQuery = queryOptions({
  queryKey: ["people", "names"],
  staleTime: 60_000,
  queryFn: async () => {
    const page = (cursor?: string) =>
      take(api.GET("/v1/people", { params: { query: { limit: 200, cursor } } }));
    return new Map((await all(page)).map(({ id, name }) => [id, name]));
  },
});

/** Tells the name behind an author's id, or the id itself where nobody of that id is known. */
export function useAuthors(): (id: string) => string {
  const { data } = useQuery(namesQuery);
  return (id) => plain(data?.get(id) ?? (id || "somebody"), 80);
}
