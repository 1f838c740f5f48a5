import type { FollowerGroup } from "./followers";

interface PinnedVersionsProps {
  groups: FollowerGroup[];
  selected: number;
  onSelect: (index: number) => void;
}

/** Where followers stand with different texts, which of them the difference is shown to. */
export function PinnedVersions({ groups, selected, onSelect }: PinnedVersionsProps) {
  if (groups.length < 2) return null;
  return (
    <fieldset className="standings">
      <legend>
        The agents stand with {groups.length} different texts. The difference is shown to:
      </legend>
      {groups.map(({ pinned, agents }, index) => (
        <label key={pinned ?? "nothing"} className="check">
          <input
            type="radio"
            name="standing"
            checked={index === selected}
            onChange={() => onSelect(index)}
          />
          <span>
            {pinned ? <code>{pinned.replace(/^sha256:/, "").slice(0, 12)}</code> : "nothing yet"}{" "}
            <span className="faint">
              {agents.length === 1 ? "1 agent" : `${agents.length.toLocaleString("en")} agents`}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
