// The files of a place as the tree shows them: each with where it comes from.

import type { FileRow, FileScope } from "../../api/files";

export type FileStatus = "update" | "override" | "template" | "defaults" | "own";

export interface TreeRow {
  path: string;
  status: FileStatus;
  pinned: boolean;
  managed: boolean;
  /** It is shown here, and said elsewhere: on a template, what the defaults say. */
  inherited: boolean;
  file: FileRow;
}

function fileStatusOf(scope: FileScope, file: FileRow): FileStatus {
  if (scope.kind === "workspace") return "own";
  if (scope.kind !== "agent") return scope.kind;
  if (file.updateAvailable) return "update";
  if (file.source.startsWith("agent-override")) return "override";
  return file.source === "defaults" ? "defaults" : "template";
}

const toTreeRow = (file: FileRow, status: FileStatus, inherited: boolean): TreeRow => ({
  path: file.path,
  status,
  pinned: file.class === "pinned",
  managed: file.class === "managed",
  inherited,
  file,
});

/** Own files, and of those beneath what no own file hides. */
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
