import type { FollowerGroup } from "./followers";

interface PinnedVersionsProps {
  groups: FollowerGroup[];
  selected: number;
  onSelect: (index: number) => void;
}

/** Select of the pinned version to diff against, if agents have different ones. */
export function PinnedVersions({ groups, selected, onSelect }: PinnedVersionsProps) {
  if (groups.length < 2) return null;
  return (
    <fieldset className="pinned-versions">
      <legend>Agents have {groups.length} different pinned versions. Compare with:</legend>
      {groups.map(({ pinned, agents }, index) => (
        <label key={pinned ?? "nothing"} className="check">
          <input
            type="radio"
            name="pinned-version"
            checked={index === selected}
            onChange={() => onSelect(index)}
          />
          <span>
            {pinned ? <code>{pinned.replace(/^sha256:/, "").slice(0, 12)}</code> : "none"}{" "}
            <span className="faint">
              {agents.length === 1 ? "1 agent" : `${agents.length.toLocaleString("en")} agents`}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
