// The four signs of where a file comes from, and what they mean.

import { Circle, FileText, Layers, LayoutTemplate, TriangleAlert } from "lucide-react";
import type { FileScope } from "../../api/files";
import type { FileStatus, TreeRow } from "./file-rows";

const STATUSES = {
  update: { icon: TriangleAlert, word: "Update available" },
  override: { icon: Circle, word: "Overridden" },
  template: { icon: LayoutTemplate, word: "From the template" },
  defaults: { icon: Layers, word: "From the defaults" },
  own: { icon: FileText, word: "A file of this workspace" },
} as const;

/** What a row's sign says, in words. */
export function statusLabel({ status, pinned, managed, inherited, file }: TreeRow): string {
  const suffix = pinned ? ", pinned" : managed ? ", managed" : "";
  if (status !== "update") {
    const label = status === "template" && !inherited ? "This template’s own" : null;
    return `${label ?? STATUSES[status].word}${suffix}`;
  }
  const override = file.source.startsWith("agent-override") ? ", overridden" : "";
  return `${STATUSES.update.word}${override}${suffix}`;
}

/** Says nothing by itself: the words stand beside it. */
export function StatusIcon({ status }: { status: FileStatus }) {
  const Icon = STATUSES[status].icon;
  const isDot = status === "override";
  return (
    <span className={`sign ${status}`} aria-hidden>
      <Icon size={isDot ? 10 : 14} fill={isDot ? "currentColor" : "none"} />
    </span>
  );
}

const LEGEND_ENTRIES: Record<FileScope["kind"], FileStatus[]> = {
  agent: ["update", "override", "template", "defaults"],
  template: ["template", "defaults"],
  defaults: [],
  workspace: [],
};

const OWN_FILE = "This template’s own";

export function Legend({ kind }: { kind: FileScope["kind"] }) {
  if (!LEGEND_ENTRIES[kind].length) return null;
  return (
    <ul className="legend" aria-label="What the signs mean">
      {LEGEND_ENTRIES[kind].map((status) => (
        <li key={status}>
          <StatusIcon status={status} />
          {kind === "template" && status === "template" ? OWN_FILE : STATUSES[status].word}
        </li>
      ))}
    </ul>
  );
}
