// Pinned files and their review: where an agent stands, accepting for one or for all, going back.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

export type Pin = ResponseBody<"/v1/agents/{id}/pins">["items"][number];

/** Every pinned file of an agent, with both texts. */
export const pinsQuery = (agentId: string) =>
  queryOptions({
    queryKey: ["pins", agentId],
    queryFn: async () =>
      (await take(api.GET("/v1/agents/{id}/pins", { params: { path: { id: agentId } } }))).items,
  });

/** Accepts exactly the text with this digest; a Problem of 409 says that it is not the latest. */
export const acceptPin = (agentId: string, path: string, sha256: string) =>
  take(
    api.POST("/v1/agents/{id}/pins/{path}/accept", {
      params: { path: { id: agentId, path } },
      body: { sha256 },
    }),
  );

export const rollBackPin = (agentId: string, path: string) =>
  take(
    api.POST("/v1/agents/{id}/pins/{path}/rollback", {
      params: { path: { id: agentId, path } },
      body: {},
    }),
  );

/** The same text for every agent that follows a template, one outcome each. */
export const acceptForAll = (templateId: string, path: string, sha256: string) =>
  take(
    api.POST("/v1/templates/{id}/pins/{path}/accept", {
      params: { path: { id: templateId, path } },
      body: { sha256 },
    }),
  );

/** What a review changes elsewhere. */
export const REVIEWED = ["pins", "files", "inbox", "agents", "prompt"];
