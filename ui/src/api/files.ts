// Files of agents, templates, the defaults and shared workspaces, behind one interface.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap, unwrapWithResponse } from "./client";

export type FileScope =
  | { kind: "agent"; id: string }
  | { kind: "template"; id: string }
  | { kind: "defaults"; id: "" }
  | { kind: "workspace"; id: string };

export const DEFAULTS: FileScope = { kind: "defaults", id: "" };

export type File = ResponseBody<"/v1/agents/{id}/files/{path}">;
// The entries of one directory, which `depth` asks for, have other rows.
export type FileRow = Extract<
  ResponseBody<"/v1/agents/{id}/files">["files"][number],
  { class: unknown }
>;
export type Version = ResponseBody<"/v1/agents/{id}/files/{path}/history">["items"][number];
export type FileExplanation = ResponseBody<"/v1/agents/{id}/files/{path}/explain">;

const ROOT_PATHS = {
  agent: "/v1/agents/{id}/files",
  template: "/v1/templates/{id}/files",
  workspace: "/v1/workspaces/{id}/files",
  defaults: "/v1/defaults/files",
} as const;

// The four path families have the same methods and types; the types name the agents' paths.
const rootPath = (scope: FileScope) => ROOT_PATHS[scope.kind] as (typeof ROOT_PATHS)["agent"];
const filePath = (scope: FileScope) => `${rootPath(scope)}/{path}` as const;
const pathParams = (scope: FileScope, path: string) => ({ id: scope.id, path });

export const filesQuery = (scope: FileScope) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "list"],
    queryFn: async () =>
      (await unwrap(api.GET(rootPath(scope), { params: { path: { id: scope.id } } })))
        .files as FileRow[],
  });

/** The stored text with unfilled placeholders, and the etag for saving. */
export const fileQuery = (scope: FileScope, path: string) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "file", path],
    queryFn: () => readFile(scope, path),
  });

export const readFile = (scope: FileScope, path: string, version?: number) =>
  unwrap(
    api.GET(filePath(scope), {
      params: { path: pathParams(scope, path), query: { raw: true, version } },
    }),
  ) as Promise<File>;

/** Encodes text as UTF-8 for a header, in which browsers allow one byte per character. */
export const encodeHeader = (text: string) =>
  String.fromCharCode(...new TextEncoder().encode(text.replace(/\s+/g, " ").trim()));

export interface FileWrite {
  content: string;
  reason?: string;
  ifMatch?: string;
  ifNoneMatch?: "*";
  acceptTemplateUpdate?: boolean;
}

/** Saves a file; `warning` names secrets found in it. */
export async function putFile(scope: FileScope, path: string, write: FileWrite) {
  const { content, reason, ifMatch, ifNoneMatch, acceptTemplateUpdate } = write;
  const header = {
    ...(reason && { "Carrel-Reason": encodeHeader(reason) }),
    ...(ifMatch && { "If-Match": ifMatch }),
    ...(ifNoneMatch && { "If-None-Match": ifNoneMatch }),
  };
  const { data, response } = await unwrapWithResponse(
    api.PUT(filePath(scope), {
      params: { path: pathParams(scope, path), header },
      body: { content, ...(acceptTemplateUpdate && { acceptTemplateUpdate }) },
    }),
  );
  return { file: data as File, warning: response.headers.get("Carrel-Warning") };
}

export const deleteFile = (scope: FileScope, path: string, ifMatch?: string, reason?: string) =>
  unwrap(
    api.DELETE(filePath(scope), {
      params: {
        path: pathParams(scope, path),
        header: {
          ...(ifMatch && { "If-Match": ifMatch }),
          ...(reason && { "Carrel-Reason": encodeHeader(reason) }),
        },
      },
    }),
  );

/** The newest versions of a file. */
export const historyQuery = (scope: FileScope, path: string) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "history", path],
    queryFn: () =>
      unwrap(api.GET(`${filePath(scope)}/history`, { params: { path: pathParams(scope, path) } })),
  });

/** All versions of a file, in pages. */
export const historyPagesQuery = (scope: FileScope, path: string) =>
  infiniteQueryOptions({
    queryKey: ["files", scope.kind, scope.id, "history-pages", path],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET(`${filePath(scope)}/history`, {
          params: { path: pathParams(scope, path), query: pageParam ? { cursor: pageParam } : {} },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
  });

/** The stored text of one version, which never changes. */
export const versionQuery = (scope: FileScope, path: string, version: number) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "version", path, version],
    queryFn: () => readFile(scope, path, version),
  });

/** Reference of a file or one of its versions, for comparisons. */
export const fileReference = (scope: FileScope, path: string, version?: number) =>
  `${scope.kind === "defaults" ? "defaults" : `${scope.kind}:${scope.id}`}/${path}@${
    version === undefined ? "now" : `v${version}`
  }`;

export const diffQuery = (scope: FileScope, path: string, from: number, to: number) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "diff", path, from, to],
    queryFn: () =>
      unwrap(
        api.GET(`${filePath(scope)}/diff`, {
          params: { path: pathParams(scope, path), query: { from, to } },
          parseAs: "text",
        }),
      ),
  });

export const explainQuery = (scope: FileScope, path: string) =>
  queryOptions({
    queryKey: ["files", scope.kind, scope.id, "explain", path],
    queryFn: () =>
      unwrap(api.GET(`${filePath(scope)}/explain`, { params: { path: pathParams(scope, path) } })),
  });

export const restoreFile = (
  scope: FileScope,
  path: string,
  version: number,
  acceptTemplateUpdate = false,
) =>
  unwrap(
    api.POST(`${filePath(scope)}/restore`, {
      params: { path: pathParams(scope, path) },
      body: { version, ...(acceptTemplateUpdate && { acceptTemplateUpdate }) },
    }),
  );

/** Console URL of a scope's files, or of one file. */
export function fileUrl(scope: FileScope, path?: string): string {
  const rootUrl = {
    agent: `/agents/${encodeURIComponent(scope.id)}/workspace`,
    template: `/agent-templates/${encodeURIComponent(scope.id)}`,
    defaults: "/agent-templates/defaults",
    workspace: `/workspaces/${encodeURIComponent(scope.id)}`,
  }[scope.kind];
  return path ? `${rootUrl}?file=${encodeURIComponent(path)}` : rootUrl;
}
