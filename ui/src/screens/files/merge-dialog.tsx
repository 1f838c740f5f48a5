// Three-way merge of a draft with a newer stored version.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useAuthorNames } from "../../api/authors";
import { type File, type FileScope, historyQuery } from "../../api/files";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import {
  detectLineEnding,
  normalizeLineEndings,
  restoreLineEndings,
} from "../../editor/line-endings";
import { ConflictHunk } from "./conflict-hunk";
import { type MergeChoice, mergeTexts, resolveMerge } from "./merge";
import type { Conflict } from "./use-save-file";

interface MergeDialogProps {
  conflict: Conflict;
  scope: FileScope;
  path: string;
  busy: boolean;
  /** Saves the merged text. */
  onSave: (text: string, base: File | null) => void;
  /** Puts the merged text into the editor. */
  onEdit: (text: string, base: File | null) => void;
  onClose: () => void;
}

export function MergeDialog({
  conflict,
  scope,
  path,
  busy,
  onSave,
  onEdit,
  onClose,
}: MergeDialogProps) {
  const { base, mine, theirs } = conflict;
  const stored = theirs?.content ?? "";
  const regions = useMemo(
    () =>
      mergeTexts(
        normalizeLineEndings(base),
        normalizeLineEndings(mine),
        normalizeLineEndings(stored),
      ),
    [base, mine, stored],
  );
  const count = regions.filter((region) => !region.isMerged).length;
  const [choices, setChoices] = useState<(MergeChoice | undefined)[]>([]);
  const resolved = resolveMerge(regions, choices);
  const text =
    resolved === null
      ? null
      : restoreLineEndings(resolved, detectLineEnding(theirs ? stored : mine));
  const remaining = count - choices.filter(Boolean).length;
  const setChoice = (conflictIndex: number, choice: MergeChoice) =>
    setChoices(
      Array.from({ length: count }, (_, n) => (n === conflictIndex ? choice : choices[n])),
    );
  let conflictIndex = -1;
  return (
    <Dialog
      wide
      title={`Merge ${escapeText(path, 80)}`}
      onClose={onClose}
      footer={
        <>
          <span className="soft grow" role="status">
            {remaining ? `${remaining} of ${count} conflicts unresolved` : "No conflicts"}
          </span>
          <Button onClick={onClose}>Cancel</Button>
          <Button disabled={text === null} onClick={() => text !== null && onEdit(text, theirs)}>
            Edit result
          </Button>
          <Button
            kind="primary"
            busy={busy}
            disabled={text === null}
            onClick={() => text !== null && onSave(text, theirs)}
          >
            Save merge
          </Button>
        </>
      }
    >
      <ConflictSummary scope={scope} path={path} theirs={theirs} count={count} />
      <div className="merge">
        {regions.map((region, n) => {
          if (region.isMerged) {
            // biome-ignore lint/suspicious/noArrayIndexKey: regions are never reordered
            return <MergedLines key={n} lines={region.lines} />;
          }
          conflictIndex += 1;
          const number = conflictIndex;
          return (
            <ConflictHunk
              // biome-ignore lint/suspicious/noArrayIndexKey: regions are never reordered
              key={n}
              number={number + 1}
              part={region}
              choice={choices[number]}
              onSelect={(choice) => setChoice(number, choice)}
            />
          );
        })}
      </div>
    </Dialog>
  );
}

function ConflictSummary({
  scope,
  path,
  theirs,
  count,
}: Pick<MergeDialogProps, "scope" | "path"> & { theirs: File | null; count: number }) {
  const nameOf = useAuthorNames();
  const { data } = useQuery(historyQuery(scope, path));
  const newest = data?.items[0];
  const authorName = newest ? nameOf(newest.author) : "Another user";
  return (
    <p>
      {theirs
        ? `${authorName} saved version ${theirs.version} while you were editing.`
        : `${authorName} deleted the file while you were editing.`}{" "}
      {count
        ? "Different lines were merged. Choose a version for each conflict."
        : "Both changes were merged. Check the result and save."}
    </p>
  );
}

const CONTEXT_LINES = 3;

/** Merged lines; the middle of a long region is collapsed. */
function MergedLines({ lines }: { lines: string[] }) {
  const [isExpanded, setExpanded] = useState(lines.length <= 2 * CONTEXT_LINES + 2);
  if (isExpanded) return <pre className="text merged">{lines.join("\n")}</pre>;
  return (
    <>
      <pre className="text merged">{lines.slice(0, CONTEXT_LINES).join("\n")}</pre>
      <Button small kind="plain" onClick={() => setExpanded(true)}>
        {lines.length - 2 * CONTEXT_LINES} more lines
      </Button>
      <pre className="text merged">{lines.slice(-CONTEXT_LINES).join("\n")}</pre>
    </>
  );
}
