// One place that two people changed: as it was, mine, theirs, and which it shall be.

import { useId } from "react";
import type { Choice, Part } from "./merge";

interface ConflictHunkProps {
  number: number;
  part: Extract<Part, { agreed: false }>;
  choice: Choice | undefined;
  onChoose: (choice: Choice) => void;
}

export function ConflictHunk({ number, part, choice, onChoose }: ConflictHunkProps) {
  const name = useId();
  const byHand = typeof choice === "object" ? choice.byHand : null;
  const startByHand = [...part.mine, ...part.theirs].join("\n");
  const option = (value: Choice, label: string, isOn: boolean) => (
    <label className="check">
      <input type="radio" name={name} checked={isOn} onChange={() => onChoose(value)} />
      {label}
    </label>
  );
  return (
    <fieldset className="hunk">
      <legend>Conflict {number}</legend>
      <div className="hunk-sides">
        <Side title="Before" lines={part.base} />
        <Side title="Mine" lines={part.mine} isChosen={choice === "mine" || choice === "both"} />
        <Side
          title="Theirs"
          lines={part.theirs}
          isChosen={choice === "theirs" || choice === "both"}
        />
      </div>
      <div className="row wrap hunk-choices">
        {option("mine", "Mine", choice === "mine")}
        {option("theirs", "Theirs", choice === "theirs")}
        {option("both", "Both, mine first", choice === "both")}
        {option({ byHand: byHand ?? startByHand }, "By hand", byHand !== null)}
      </div>
      {byHand !== null && (
        <textarea
          className="input mono"
          aria-label={`Conflict ${number} by hand`}
          rows={Math.min(12, byHand.split("\n").length + 1)}
          value={byHand}
          onChange={(event) => onChoose({ byHand: event.target.value })}
        />
      )}
    </fieldset>
  );
}

function Side({ title, lines, isChosen }: { title: string; lines: string[]; isChosen?: boolean }) {
  return (
    <div className={isChosen ? "hunk-side chosen" : "hunk-side"}>
      <h3>{title}</h3>
      <pre className="text">
        {lines.length ? lines.join("\n") : <span className="faint">(nothing)</span>}
      </pre>
    </div>
  );
}
