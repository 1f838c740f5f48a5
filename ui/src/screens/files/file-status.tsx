// The four signs of where a file comes from, and what they mean.

import { Circle, FileText, Layers, LayoutTemplate, TriangleAlert } from "lucide-react";
import type { Place } from "../../api/files";
import type { Row, Standing } from "./file-rows";

const SIGNS = {
  update: { icon: TriangleAlert, word: "Update available" },
  override: { icon: Circle, word: "Overridden" },
  template: { icon: LayoutTemplate, word: "From the template" },
  defaults: { icon: Layers, word: "From the defaults" },
  own: { icon: FileText, word: "A file of this workspace" },
} as const;

/** What a row's sign says, in words. */
export function wordsOf({ standing, pinned, managed, inherited, file }: Row): string {
  const also = pinned ? ", pinned" : managed ? ", managed" : "";
  if (standing !== "update") {
    const word = standing === "template" && !inherited ? "This template’s own" : null;
    return `${word ?? SIGNS[standing].word}${also}`;
  }
  const over = file.source.startsWith("agent-override") ? ", overridden" : "";
  return `${SIGNS.update.word}${over}${also}`;
}

/** Says nothing by itself: the words stand beside it. */
export function Sign({ standing }: { standing: Standing }) {
  const Icon = SIGNS[standing].icon;
  const isDot = standing === "override";
  return (
    <span className={`sign ${standing}`} aria-hidden>
      <Icon size={isDot ? 10 : 14} fill={isDot ? "currentColor" : "none"} />
    </span>
  );
}

const LEGENDS: Record<Place["kind"], Standing[]> = {
  agent: ["update", "override", "template", "defaults"],
  template: ["template", "defaults"],
  defaults: [],
  workspace: [],
};

const OWN = "This template’s own";

export function Legend({ kind }: { kind: Place["kind"] }) {
  if (!LEGENDS[kind].length) return null;
  return (
    <ul className="legend" aria-label="What the signs mean">
      {LEGENDS[kind].map((standing) => (
        <li key={standing}>
          <Sign standing={standing} />
          {kind === "template" && standing === "template" ? OWN : SIGNS[standing].word}
        </li>
      ))}
    </ul>
  );
}
