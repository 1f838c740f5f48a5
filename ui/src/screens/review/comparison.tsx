import { useMemo } from "react";
import { SideBySide } from "../../editor";

interface ComparisonProps {
  pinned: string | null;
  latest: string | null;
  path: string;
}

/** What was reviewed, left, and what is offered, right. */
export function Comparison({ pinned, latest, path }: ComparisonProps) {
  const left = useMemo(
    () => ({ label: `Pinned text of ${path}`, text: pinned ?? "" }),
    [pinned, path],
  );
  const right = useMemo(
    () => ({ label: `Latest text of ${path}`, text: latest ?? "" }),
    [latest, path],
  );
  return (
    <div className="comparison">
      <div className="comparison-heads">
        <h3>
          Pinned <span className="faint">{pinned === null ? "nothing yet" : "what it has"}</span>
        </h3>
        <h3>
          Latest{" "}
          <span className="faint">{latest === null ? "no longer offered" : "what is offered"}</span>
        </h3>
      </div>
      <SideBySide left={left} right={right} />
    </div>
  );
}
