// The files of a place as the tree shows them: each with where it comes from.

import type { FileRow, Place } from "../../api/files";

export type Standing = "update" | "override" | "template" | "defaults" | "own";

export interface Row {
  path: string;
  standing: Standing;
  pinned: boolean;
  managed: boolean;
  /** It is shown here, and said elsewhere: on a template, what the defaults say. */
  inherited: boolean;
  file: FileRow;
}

function standingOf(place: Place, file: FileRow): Standing {
  if (place.kind === "workspace") return "own";
  if (place.kind !== "agent") return place.kind;
  if (file.updateAvailable) return "update";
  if (file.source.startsWith("agent-override")) return "override";
  return file.source === "defaults" ? "defaults" : "template";
}

const rowOf = (file: FileRow, standing: Standing, inherited: boolean): Row => ({
  path: file.path,
  standing,
  pinned: file.class === "pinned",
  managed: file.class === "managed",
  inherited,
  file,
});

/** Own files, and of those beneath what no own file hides. */
export function rowsOf(place: Place, own: FileRow[], beneath: FileRow[] = []): Row[] {
  const said = new Set(own.map(({ path }) => path));
  return [
    ...own.map((file) => rowOf(file, standingOf(place, file), isInherited(place, file))),
    ...beneath
      .filter(({ path }) => !said.has(path))
      .map((file) => rowOf(file, "defaults" as const, true)),
  ];
}

const isInherited = (place: Place, file: FileRow) =>
  place.kind === "agent" && !file.source.startsWith("agent-override");
