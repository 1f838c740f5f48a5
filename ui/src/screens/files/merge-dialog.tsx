// Two people wrote at once: what both began from, what each made of it, and one text of both.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useAuthors } from "../../api/authors";
import { type File, historyQuery, type Place } from "../../api/files";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { asStored, endingOf, forEditing } from "../../editor/line-endings";
import { ConflictHunk } from "./conflict-hunk";
import { type Choice, chosenText, merged } from "./merge";
import type { Conflict } from "./use-save-file";

interface ThreeWayProps {
  conflict: Conflict;
  place: Place;
  path: string;
  busy: boolean;
  /** Saves the text over what others stored. */
  onSave: (text: string, on: File | null) => void;
  /** Puts the text into the editor instead, to go on with. */
  onEdit: (text: string, on: File | null) => void;
  onClose: () => void;
}

export function ThreeWay({ conflict, place, path, busy, onSave, onEdit, onClose }: ThreeWayProps) {
  const { base, mine, theirs } = conflict;
  const stored = theirs?.content ?? "";
  const parts = useMemo(
    () => merged(forEditing(base), forEditing(mine), forEditing(stored)),
    [base, mine, stored],
  );
  const count = parts.filter((part) => !part.agreed).length;
  const [choices, setChoices] = useState<(Choice | undefined)[]>([]);
  const chosen = chosenText(parts, choices);
  const text = chosen === null ? null : asStored(chosen, endingOf(theirs ? stored : mine));
  const open = count - choices.filter(Boolean).length;
  const choose = (at: number, choice: Choice) =>
    setChoices(Array.from({ length: count }, (_, n) => (n === at ? choice : choices[n])));
  let at = -1;
  return (
    <Dialog
      wide
      title={`Two texts of ${plain(path, 80)}`}
      onClose={onClose}
      foot={
        <>
          <span className="soft grow" role="status">
            {open ? `${open} of ${count} still to be chosen` : "Nothing is in conflict any more."}
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
      <Told place={place} path={path} theirs={theirs} count={count} />
      <div className="merge">
        {parts.map((part, n) => {
          if (part.agreed) {
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one merge never move
            return <Agreed key={n} lines={part.lines} />;
          }
          at += 1;
          const number = at;
          return (
            <ConflictHunk
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one merge never move
              key={n}
              number={number + 1}
              part={part}
              choice={choices[number]}
              onChoose={(choice) => choose(number, choice)}
            />
          );
        })}
      </div>
    </Dialog>
  );
}

function Told({
  place,
  path,
  theirs,
  count,
}: Pick<ThreeWayProps, "place" | "path"> & { theirs: File | null; count: number }) {
  const author = useAuthors();
  const { data } = useQuery(historyQuery(place, path));
  const newest = data?.items[0];
  const who = newest ? author(newest.author) : "Somebody";
  return (
    <p>
      {theirs
        ? `${who} saved version ${theirs.version} while you were writing.`
        : `${who} deleted the file while you were writing.`}{" "}
      {count
        ? "Where you changed different lines, both stand below. Where you changed the same ones, choose."
        : "You changed different lines, so both fit together. Look it over, and save."}
    </p>
  );
}

const EDGE = 3;

/** Lines that need no choice; the middle of many is left out until it is asked for. */
function Agreed({ lines }: { lines: string[] }) {
  const [isWhole, setWhole] = useState(lines.length <= 2 * EDGE + 2);
  if (isWhole) return <pre className="text agreed">{lines.join("\n")}</pre>;
  return (
    <>
      <pre className="text agreed">{lines.slice(0, EDGE).join("\n")}</pre>
      <Button small kind="plain" onClick={() => setWhole(true)}>
        {lines.length - 2 * EDGE} more lines
      </Button>
      <pre className="text agreed">{lines.slice(-EDGE).join("\n")}</pre>
    </>
  );
}
