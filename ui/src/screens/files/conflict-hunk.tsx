// One merge conflict: base, mine, theirs, and the choice.

import { useId } from "react";
import type { MergeChoice, MergeRegion } from "./merge";

interface ConflictHunkProps {
  number: number;
  part: Extract<MergeRegion, { isMerged: false }>;
  choice: MergeChoice | undefined;
  onSelect: (choice: MergeChoice) => void;
}

export function ConflictHunk({ number, part, choice, onSelect }: ConflictHunkProps) {
  const name = useId();
  const manualText = typeof choice === "object" ? choice.manualText : null;
  const initialManualText = [...part.mine, ...part.theirs].join("\n");
  const option = (value: MergeChoice, label: string, isSelected: boolean) => (
    <label className="check">
      <input type="radio" name={name} checked={isSelected} onChange={() => onSelect(value)} />
      {label}
    </label>
  );
  return (
    <fieldset className="hunk">
      <legend>Conflict {number}</legend>
      <div className="hunk-sides">
        <Side title="Base" lines={part.base} />
        <Side title="Mine" lines={part.mine} isSelected={choice === "mine" || choice === "both"} />
        <Side
          title="Theirs"
          lines={part.theirs}
          isSelected={choice === "theirs" || choice === "both"}
        />
      </div>
      <div className="row wrap hunk-choices">
        {option("mine", "Mine", choice === "mine")}
        {option("theirs", "Theirs", choice === "theirs")}
        {option("both", "Both (mine first)", choice === "both")}
        {option({ manualText: manualText ?? initialManualText }, "Edit", manualText !== null)}
      </div>
      {manualText !== null && (
        <textarea
          className="input mono"
          aria-label={`Edit conflict ${number}`}
          rows={Math.min(12, manualText.split("\n").length + 1)}
          value={manualText}
          onChange={(event) => onSelect({ manualText: event.target.value })}
        />
      )}
    </fieldset>
  );
}

function Side({
  title,
  lines,
  isSelected,
}: {
  title: string;
  lines: string[];
  isSelected?: boolean;
}) {
  return (
    <div className={isSelected ? "hunk-side selected" : "hunk-side"}>
      <h3>{title}</h3>
      <pre className="text">
        {lines.length ? lines.join("\n") : <span className="faint">(empty)</span>}
      </pre>
    </div>
  );
}
