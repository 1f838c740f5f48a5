// Two people wrote at once: what both began from, what each made of it, and one text of both.

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
  /** Saves the text over what others stored. */
  onSave: (text: string, base: File | null) => void;
  /** Puts the text into the editor instead, to go on with. */
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
      title={`Two texts of ${escapeText(path, 80)}`}
      onClose={onClose}
      footer={
        <>
          <span className="soft grow" role="status">
            {remaining
              ? `${remaining} of ${count} still to be chosen`
              : "Nothing is in conflict any more."}
          </span>
          <Button onClick={onClose}>Back to my text</Button>
          <Button disabled={text === null} onClick={() => text !== null && onEdit(text, theirs)}>
            Go on editing
          </Button>
          <Button
            kind="primary"
            busy={busy}
            disabled={text === null}
            onClick={() => text !== null && onSave(text, theirs)}
          >
            Save both
          </Button>
        </>
      }
    >
      <ConflictSummary scope={scope} path={path} theirs={theirs} count={count} />
      <div className="merge">
        {regions.map((region, n) => {
          if (region.isMerged) {
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one merge never move
            return <MergedLines key={n} lines={region.lines} />;
          }
          conflictIndex += 1;
          const number = conflictIndex;
          return (
            <ConflictHunk
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one merge never move
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
  const authorName = newest ? nameOf(newest.author) : "Somebody";
  return (
    <p>
      {theirs
        ? `${authorName} saved version ${theirs.version} while you were writing.`
        : `${authorName} deleted the file while you were writing.`}{" "}
      {count
        ? "Where you changed different lines, both stand below. Where you changed the same ones, choose."
        : "You changed different lines, so both fit together. Look it over, and save."}
    </p>
  );
}

const CONTEXT_LINES = 3;

/** Lines that need no choice; the middle of many is left out until it is asked for. */
function MergedLines({ lines }: { lines: string[] }) {
  const [isExpanded, setExpanded] = useState(lines.length <= 2 * CONTEXT_LINES + 2);
  if (isExpanded) return <pre className="text agreed">{lines.join("\n")}</pre>;
  return (
    <>
      <pre className="text agreed">{lines.slice(0, CONTEXT_LINES).join("\n")}</pre>
      <Button small kind="plain" onClick={() => setExpanded(true)}>
        {lines.length - 2 * CONTEXT_LINES} more lines
      </Button>
      <pre className="text agreed">{lines.slice(-CONTEXT_LINES).join("\n")}</pre>
    </>
  );
}
