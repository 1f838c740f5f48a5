// Icons and labels of file statuses.

import { Circle, FileText, Layers, LayoutTemplate, TriangleAlert, UserRound } from "lucide-react";
import type { FileScope } from "../../api/files";
import type { FileStatus, TreeRow } from "./file-rows";

const STATUSES = {
  update: { icon: TriangleAlert, label: "Update available" },
  override: { icon: Circle, label: "Override" },
  template: { icon: LayoutTemplate, label: "From template" },
  defaults: { icon: Layers, label: "From defaults" },
  own: { icon: FileText, label: "Own file" },
  managed: { icon: UserRound, label: "Managed by Carrel" },
} as const;

/** Label of a row's status. */
export function statusLabel({ status, pinned, managed, inherited, file }: TreeRow): string {
  const suffix = pinned ? ", pinned" : managed && status !== "managed" ? ", managed" : "";
  if (status !== "update") {
    const label =
      status === "template" && !inherited
        ? "Template file"
        : file.source === "workspace"
          ? "Workspace file"
          : null;
    return `${label ?? STATUSES[status].label}${suffix}`;
  }
  const override = file.overrides ? ", override" : "";
  return `${STATUSES.update.label}${override}${suffix}`;
}

/** Decorative; the label stands beside it. */
export function StatusIcon({ status }: { status: FileStatus }) {
  const Icon = STATUSES[status].icon;
  const isDot = status === "override";
  return (
    <span className={`status-icon ${status}`} aria-hidden>
      <Icon size={isDot ? 10 : 14} fill={isDot ? "currentColor" : "none"} />
    </span>
  );
}

const LEGEND_ENTRIES: Record<FileScope["kind"], FileStatus[]> = {
  agent: ["update", "override", "template", "defaults", "own", "managed"],
  template: ["template", "defaults"],
  defaults: [],
  workspace: [],
};

const OWN_FILE = "Template file";

export function Legend({ kind }: { kind: FileScope["kind"] }) {
  if (!LEGEND_ENTRIES[kind].length) return null;
  return (
    <ul className="legend" aria-label="Legend">
      {LEGEND_ENTRIES[kind].map((status) => (
        <li key={status}>
          <StatusIcon status={status} />
          {kind === "template" && status === "template" ? OWN_FILE : STATUSES[status].label}
        </li>
      ))}
    </ul>
  );
}
