// Past reviews of pinned files, declines, merges, and the versions that agents have.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import { DEFAULTS_ID } from "./pins";

export type Review = ResponseBody<"/v1/reviews">["items"][number];

export const reviewsQuery = () =>
  infiniteQueryOptions({
    queryKey: ["inbox", "reviews"],
    queryFn: ({ pageParam: cursor }) =>
      unwrap(api.GET("/v1/reviews", { params: { query: { limit: 25, cursor } } })),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
  });

/** Declines of a template's updates, newest first; of the defaults: those of any agents. */
export const declinesQuery = (templateId: string) =>
  queryOptions({
    queryKey: ["inbox", "declines", templateId],
    queryFn: () =>
      unwrap(
        api.GET("/v1/reviews", {
          params: {
            query: {
              decision: "declined",
              limit: 20,
              ...(templateId !== DEFAULTS_ID && { templateId }),
            },
          },
        }),
      ),
  });

export const rollBackReview = (id: string) =>
  unwrap(api.POST("/v1/reviews/{id}/rollback", { params: { path: { id } } }));

/** The newest review of an agent's file that was for this agent alone. */
export async function findNewestReview(agentId: string, path: string): Promise<Review | null> {
  const query = { agentId, limit: 20 };
  const { items } = await unwrap(api.GET("/v1/reviews", { params: { query } }));
  return items.find((review) => review.path === path) ?? null;
}

export const newestReviewQuery = (agentId: string, path: string) =>
  queryOptions({
    queryKey: ["pins", "review", agentId, path],
    queryFn: () => findNewestReview(agentId, path),
  });

/** Rolls back the newest review of an agent's file. */
export async function undoNewestReview(agentId: string, path: string): Promise<void> {
  const newest = await findNewestReview(agentId, path);
  if (newest) await rollBackReview(newest.id);
}

export const declinePin = (agentId: string, path: string, sha256: string | null, reason: string) =>
  unwrap(
    api.POST("/v1/agents/{id}/pins/{path}/decline", {
      params: { path: { id: agentId, path } },
      body: { sha256, reason },
    }),
  );

/** Declines an update, or the removal (null), for all agents that are offered it. */
export const declineForAll = (
  templateId: string,
  path: string,
  sha256: string | null,
  reason: string,
) =>
  templateId === DEFAULTS_ID
    ? unwrap(
        api.POST("/v1/defaults/pins/{path}/decline", {
          params: { path: { path } },
          body: { sha256, reason },
        }),
      )
    : unwrap(
        api.POST("/v1/templates/{id}/pins/{path}/decline", {
          params: { path: { id: templateId, path } },
          body: { sha256, reason },
        }),
      );

/** Merge of the offered text into the override, with conflicts marked. */
export const proposeMerge = (agentId: string, path: string) =>
  unwrap(api.GET("/v1/agents/{id}/pins/{path}/merge", { params: { path: { id: agentId, path } } }));

interface MergedText {
  sha256: string;
  content: string;
  ifMatch: string;
}

export const saveMerge = (agentId: string, path: string, body: MergedText) =>
  unwrap(
    api.POST("/v1/agents/{id}/pins/{path}/merge", {
      params: { path: { id: agentId, path } },
      body,
    }),
  );

/** How many agents have which version of a pinned file. */
export const pinnedVersionsQuery = (templateId: string, path: string) =>
  queryOptions({
    queryKey: ["pins", "versions", templateId, path],
    queryFn: () =>
      templateId === DEFAULTS_ID
        ? unwrap(api.GET("/v1/defaults/pins/{path}/versions", { params: { path: { path } } }))
        : unwrap(
            api.GET("/v1/templates/{id}/pins/{path}/versions", {
              params: { path: { id: templateId, path } },
            }),
          ),
  });
