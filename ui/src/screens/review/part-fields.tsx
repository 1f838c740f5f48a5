// Choice of the agents that get an update first.

import { useQuery } from "@tanstack/react-query";
import type { FollowerPart } from "../../api/pins";
import { tagsQuery } from "../../api/tags";
import { escapeText } from "../../components/escape-text";

export interface PartChoice {
  kind: "all" | "share" | "count" | "tag";
  /** Percentage, number or tag. */
  value: string;
}

export const ALL_AGENTS: PartChoice = { kind: "all", value: "" };
const SHARES = ["5", "10", "25", "50"];
const INITIAL_COUNT = "10";

/** Null for all agents, and while the choice is not complete. */
export function partOf({ kind, value }: PartChoice): FollowerPart | null {
  if (kind === "tag") return value ? { tag: value } : null;
  const number = Number(value);
  if (kind === "share") return { share: number };
  return kind === "count" && Number.isInteger(number) && number > 0 ? { count: number } : null;
}

export function describePart(part: FollowerPart): string {
  if ("share" in part) return `${part.share} % of the agents`;
  if ("count" in part)
    return part.count === 1
      ? "1 of the agents"
      : `${part.count.toLocaleString("en")} of the agents`;
  return "tag" in part ? `agents with the tag ${escapeText(part.tag, 60)}` : "the chosen agents";
}

interface PartFieldsProps {
  choice: PartChoice;
  onChange: (choice: PartChoice) => void;
  disabled: boolean;
}

export function PartFields({ choice, onChange, disabled }: PartFieldsProps) {
  const tags = useQuery({ ...tagsQuery, enabled: choice.kind === "tag" }).data ?? [];
  const selectKind = (text: string) => {
    const [kind = "all", value = ""] = text.split(" ");
    onChange({ kind: kind as PartChoice["kind"], value });
  };
  return (
    <div className="card-body row wrap">
      <label className="row">
        Accept first for
        <select
          className="input part-kind"
          value={choice.kind === "share" ? `share ${choice.value}` : choice.kind}
          disabled={disabled}
          onChange={({ target }) =>
            selectKind(target.value === "count" ? `count ${INITIAL_COUNT}` : target.value)
          }
        >
          <option value="all">all agents</option>
          {SHARES.map((percent) => (
            <option key={percent} value={`share ${percent}`}>
              {percent} % of the agents
            </option>
          ))}
          <option value="count">a number of agents</option>
          <option value="tag">agents with a tag</option>
        </select>
      </label>
      {choice.kind === "count" && (
        <input
          className="input short"
          type="number"
          min={1}
          aria-label="Number of agents"
          value={choice.value}
          disabled={disabled}
          onChange={({ target }) => onChange({ kind: "count", value: target.value })}
        />
      )}
      {choice.kind === "tag" && (
        <select
          className="input short"
          aria-label="Tag"
          value={choice.value}
          disabled={disabled}
          onChange={({ target }) => onChange({ kind: "tag", value: target.value })}
        >
          <option value="">Select a tag</option>
          {tags.map(({ tag, agents }) => (
            <option key={tag} value={tag}>
              {escapeText(tag, 60)} ({agents.toLocaleString("en")})
            </option>
          ))}
        </select>
      )}
    </div>
  );
}
