import { useMemo } from "react";
import { SideBySide } from "../../editor";

interface ComparisonProps {
  pinned: string | null;
  latest: string | null;
  path: string;
}

/** Diff of the pinned text (left) and the latest text (right). */
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
      <div className="comparison-header">
        <h3>
          Pinned <span className="faint">{pinned === null ? "none" : "current version"}</span>
        </h3>
        <h3>
          Latest <span className="faint">{latest === null ? "deleted" : "new version"}</span>
        </h3>
      </div>
      <SideBySide left={left} right={right} />
    </div>
  );
}
