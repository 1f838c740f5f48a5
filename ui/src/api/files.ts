// Where files stand, and what one does with them: the same for agents, templates, the defaults and
// shared workspaces, since the server speaks of all of them in the same way.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take, taken } from "./client";

export type Place =
  | { kind: "agent"; id: string }
  | { kind: "template"; id: string }
  | { kind: "defaults"; id: "" }
  | { kind: "workspace"; id: string };

export const DEFAULTS: Place = { kind: "defaults", id: "" };

export type File = ResponseBody<"/v1/agents/{id}/files/{path}">;
export type FileRow = ResponseBody<"/v1/agents/{id}/files">["files"][number];
export type Version = ResponseBody<"/v1/agents/{id}/files/{path}/history">["items"][number];
export type Explained = ResponseBody<"/v1/agents/{id}/files/{path}/explain">;

const ROOTS = {
  agent: "/v1/agents/{id}/files",
  template: "/v1/templates/{id}/files",
  workspace: "/v1/workspaces/{id}/files",
  defaults: "/v1/defaults/files",
} as const;

// The four families have the same methods and shapes; the agents' stands for all in the types.
const rootOf = (place: Place) => ROOTS[place.kind] as (typeof ROOTS)["agent"];
const fileOf = (place: Place) => `${rootOf(place)}/{path}` as const;
const at = (place: Place, path: string) => ({ id: place.id, path });

export const filesQuery = (place: Place) =>
  queryOptions({
    queryKey: ["files", place.kind, place.id, "list"],
    queryFn: async () =>
      (await take(api.GET(rootOf(place), { params: { path: { id: place.id } } }))).files,
  });

/** The text as it is stored, its placeholders unfilled, with the etag to save it by. */
export const fileQuery = (place: Place, path: string) =>
  queryOptions({
    queryKey: ["files", place.kind, place.id, "file", path],
    queryFn: () => readFile(place, path),
  });

export const readFile = (place: Place, path: string, version?: number) =>
  take(
    api.GET(fileOf(place), { params: { path: at(place, path), query: { raw: true, version } } }),
  ) as Promise<File>;

/** UTF-8 as a header carries it: browsers take a character for a byte there. */
export const header8 = (text: string) =>
  String.fromCharCode(...new TextEncoder().encode(text.replace(/\s+/g, " ").trim()));

export interface Writing {
  content: string;
  reason?: string;
  ifMatch?: string;
  ifNoneMatch?: "*";
  acceptTemplateUpdate?: boolean;
}

/** Saves a file; `warning` names secrets that were seen in it. */
export async function putFile(place: Place, path: string, writing: Writing) {
  const { content, reason, ifMatch, ifNoneMatch, acceptTemplateUpdate } = writing;
  const header = {
    ...(reason && { "Carrel-Reason": header8(reason) }),
    ...(ifMatch && { "If-Match": ifMatch }),
    ...(ifNoneMatch && { "If-None-Match": ifNoneMatch }),
  };
  const { data, response } = await taken(
    api.PUT(fileOf(place), {
      params: { path: at(place, path), header },
      body: { content, ...(acceptTemplateUpdate && { acceptTemplateUpdate }) },
    }),
  );
  return { file: data as File, warning: response.headers.get("Carrel-Warning") };
}

export const deleteFile = (place: Place, path: string, ifMatch?: string, reason?: string) =>
  take(
    api.DELETE(fileOf(place), {
      params: {
        path: at(place, path),
        header: {
          ...(ifMatch && { "If-Match": ifMatch }),
          ...(reason && { "Carrel-Reason": header8(reason) }),
        },
      },
    }),
  );

export const historyQuery = (place: Place, path: string) =>
  queryOptions({
    queryKey: ["files", place.kind, place.id, "history", path],
    queryFn: () => take(api.GET(`${fileOf(place)}/history`, { params: { path: at(place, path) } })),
  });

export const diffQuery = (place: Place, path: string, from: number, to: number) =>
  queryOptions({
    queryKey: ["files", place.kind, place.id, "diff", path, from, to],
    queryFn: () =>
      take(
        api.GET(`${fileOf(place)}/diff`, {
          params: { path: at(place, path), query: { from, to } },
          parseAs: "text",
        }),
      ),
  });

export const explainQuery = (place: Place, path: string) =>
  queryOptions({
    queryKey: ["files", place.kind, place.id, "explain", path],
    queryFn: () => take(api.GET(`${fileOf(place)}/explain`, { params: { path: at(place, path) } })),
  });

export const restoreFile = (
  place: Place,
  path: string,
  version: number,
  acceptTemplateUpdate = false,
) =>
  take(
    api.POST(`${fileOf(place)}/restore`, {
      params: { path: at(place, path) },
      body: { version, ...(acceptTemplateUpdate && { acceptTemplateUpdate }) },
    }),
  );

/** Where the desk shows a file of a place. */
export function addressOf(place: Place, path?: string): string {
  const root = {
    agent: `/agents/${encodeURIComponent(place.id)}/workspace`,
    template: `/agent-templates/${encodeURIComponent(place.id)}`,
    defaults: "/agent-templates/defaults",
    workspace: `/workspaces/${encodeURIComponent(place.id)}`,
  }[place.kind];
  return path ? `${root}?file=${encodeURIComponent(path)}` : root;
}
