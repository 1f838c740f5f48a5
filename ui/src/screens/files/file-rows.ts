// Rows of the file tree, with the status of each file.

import type { FileRow, FileScope } from "../../api/files";

export type FileStatus = "update" | "override" | "template" | "defaults" | "own" | "managed";

export interface TreeRow {
  path: string;
  status: FileStatus;
  pinned: boolean;
  managed: boolean;
  /** The file comes from a lower layer. */
  inherited: boolean;
  file: FileRow;
}

/** Status by the server's fields; it counts overrides in lists by the same rule. */
function fileStatusOf(scope: FileScope, file: FileRow): FileStatus {
  if (scope.kind === "workspace") return "own";
  if (scope.kind !== "agent") return scope.kind;
  if (file.updateAvailable) return "update";
  if (file.overrides) return "override";
  if (!isInherited(scope, file)) return file.class === "managed" ? "managed" : "own";
  return file.upstream ?? "own";
}

const toTreeRow = (file: FileRow, status: FileStatus, inherited: boolean): TreeRow => ({
  path: file.path,
  status,
  pinned: file.class === "pinned",
  managed: file.class === "managed",
  inherited,
  file,
});

/** Own files, and files of the defaults without an own file. */
export function treeRows(scope: FileScope, own: FileRow[], defaults: FileRow[] = []): TreeRow[] {
  const ownPaths = new Set(own.map(({ path }) => path));
  return [
    ...own.map((file) => toTreeRow(file, fileStatusOf(scope, file), isInherited(scope, file))),
    ...defaults
      .filter(({ path }) => !ownPaths.has(path))
      .map((file) => toTreeRow(file, "defaults" as const, true)),
  ];
}

const isInherited = (scope: FileScope, file: FileRow) =>
  scope.kind === "agent" && !file.source.startsWith("agent-override");
