// Comparisons of agents, templates, runs, workspaces and versions.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Comparison = ResponseBody<"/v1/compare">;
export type ComparedPath = Comparison["items"][number];
export type ComparisonStatus = ComparedPath["status"];

export interface ComparedSides {
  left: string;
  right: string;
  raw: boolean;
}

const PAGE_SIZE = 200;

export const comparisonQuery = (sides: ComparedSides, status: string) =>
  infiniteQueryOptions({
    queryKey: ["compare", sides, status],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/v1/compare", {
          params: { query: { ...sides, status, limit: PAGE_SIZE, cursor: pageParam } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });

/** The references of one file of both sides, without what follows the path. */
function fileReferences({ left, right }: ComparedSides, item: ComparedPath) {
  const ofFile = (reference: string, path: string | undefined) => {
    const at = /@(now|v\d+|\d{4}-\d\d-\d\dT.*)$/.exec(reference)?.[0] ?? "@now";
    const owner = reference.replace(/[/@].*$/s, "");
    const isRun = owner.startsWith("run:");
    return `${owner}/${path ?? item.path}${isRun ? "" : at}`;
  };
  return { left: ofFile(left, item.left?.path), right: ofFile(right, item.right?.path) };
}

export const fileComparisonQuery = (sides: ComparedSides, item: ComparedPath) =>
  queryOptions({
    queryKey: ["compare", sides, "file", item.path],
    queryFn: async () => {
      const query = { ...fileReferences(sides, item), raw: sides.raw, diff: true };
      const { items } = await unwrap(api.GET("/v1/compare", { params: { query } }));
      return items[0] ?? null;
    },
  });
