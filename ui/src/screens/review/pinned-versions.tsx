import type { Group } from "./followers";

interface StandingsProps {
  groups: Group[];
  chosen: number;
  onChoose: (at: number) => void;
}

/** Where followers stand with different texts, which of them the difference is shown to. */
export function Standings({ groups, chosen, onChoose }: StandingsProps) {
  if (groups.length < 2) return null;
  return (
    <fieldset className="standings">
      <legend>
        The agents stand with {groups.length} different texts. The difference is shown to:
      </legend>
      {groups.map(({ pinned, agents }, at) => (
        <label key={pinned ?? "nothing"} className="check">
          <input
            type="radio"
            name="standing"
            checked={at === chosen}
            onChange={() => onChoose(at)}
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
