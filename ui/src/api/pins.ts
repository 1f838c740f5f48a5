// Pinned files of agents: status, accept and roll back.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Pin = ResponseBody<"/v1/agents/{id}/pins">["items"][number];

/** Pinned files of an agent, with the pinned and the latest text. */
export const pinsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ["pins", agentId],
    queryFn: async () =>
      (await unwrap(api.GET("/v1/agents/{id}/pins", { params: { path: { id: agentId } } }))).items,
  });

/** Accepts the text with this digest, or the removal (null); throws Problem 409 if it is no longer the latest. */
export const acceptPin = (agentId: string, path: string, sha256: string | null) =>
  unwrap(
    api.POST("/v1/agents/{id}/pins/{path}/accept", {
      params: { path: { id: agentId, path } },
      body: { sha256 },
    }),
  );

export const rollBackPin = (agentId: string, path: string) =>
  unwrap(
    api.POST("/v1/agents/{id}/pins/{path}/rollback", {
      params: { path: { id: agentId, path } },
      body: {},
    }),
  );

/** In place of a template's id: all agents that inherit from the defaults. No slug can be this. */
export const DEFAULTS_ID = "defaults";

/** Agents chosen for an accept; exactly one field. */
export type FollowerPart =
  | { count: number }
  | { share: number }
  | { tag: string }
  | { agentIds: string[] };

/** Accepts a text, or the removal (null), for the agents of a template, or a part of them, with one outcome per agent. */
export const acceptForAll = (
  templateId: string,
  path: string,
  sha256: string | null,
  part?: FollowerPart,
) =>
  templateId === DEFAULTS_ID
    ? unwrap(
        api.POST("/v1/defaults/pins/{path}/accept", {
          params: { path: { path } },
          body: { sha256, ...(part && { part }) },
        }),
      )
    : unwrap(
        api.POST("/v1/templates/{id}/pins/{path}/accept", {
          params: { path: { id: templateId, path } },
          body: { sha256, ...(part && { part }) },
        }),
      );

/** Queries that a review makes stale. */
export const REVIEW_QUERY_KEYS = ["pins", "files", "inbox", "agents", "prompt"];
