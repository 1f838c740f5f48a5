import { useMemo, useState } from "react";
import { SideBySide } from "../../editor";

interface ComparisonProps {
  served: string | null;
  pinned: string | null;
  latest: string | null;
  path: string;
  isOverridden?: boolean;
}

type View = "served" | "pinned";

/** Diff of what an agent is served now (left) and what it will be served (right). */
export function Comparison({ served, pinned, latest, path, isOverridden }: ComparisonProps) {
  const [view, setView] = useState<View>("served");
  const before = view === "served" ? served : pinned;
  const name = view === "pinned" ? "Pinned" : isOverridden ? "Override" : "Served";
  const left = useMemo(
    () => ({ label: `${name} text of ${path}`, text: before ?? "" }),
    [name, before, path],
  );
  const right = useMemo(
    () => ({ label: `Latest text of ${path}`, text: latest ?? "" }),
    [latest, path],
  );
  return (
    <div className="comparison">
      {isOverridden && (
        <fieldset className="checkbox-group">
          <legend className="label">Compare with the offered text</legend>
          <ViewChoice view="served" current={view} onChange={setView}>
            Override, served now
          </ViewChoice>
          <ViewChoice view="pinned" current={view} onChange={setView}>
            Pinned text
          </ViewChoice>
        </fieldset>
      )}
      <div className="comparison-header">
        <h3>
          {name} <span className="faint">{before === null ? "none" : sideNote(view)}</span>
        </h3>
        <h3>
          Latest <span className="faint">{latest === null ? "removed" : "served if accepted"}</span>
        </h3>
      </div>
      <SideBySide left={left} right={right} />
    </div>
  );
}

const sideNote = (view: View) => (view === "served" ? "before" : "reviewed before");

interface ViewChoiceProps {
  view: View;
  current: View;
  onChange: (view: View) => void;
  children: string;
}

const ViewChoice = ({ view, current, onChange, children }: ViewChoiceProps) => (
  <label className="check">
    <input
      type="radio"
      name="comparison"
      checked={view === current}
      onChange={() => onChange(view)}
    />
    {children}
  </label>
);
