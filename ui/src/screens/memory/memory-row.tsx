// One memory: content, tags and score.

import { Pencil, Trash2 } from "lucide-react";
import type { Memory } from "../../api/memories";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { ScoreBar } from "./score-bar";
import { useDisabledReason } from "./use-disabled-reason";

interface MemoryRowProps {
  agentId: string;
  memory: Memory;
  onForget: () => void;
  onEdit: () => void;
}

export function MemoryRow({ agentId, memory, onForget, onEdit }: MemoryRowProps) {
  const { content, tags, conceptTags, kind, scope, createdAt, promotedAt, score } = memory;
  const disabledReason = useDisabledReason(agentId);
  return (
    <li>
      {score !== undefined && <ScoreBar score={score} label="Match score" />}
      <div className="grow stack tight">
        <div className="bidi">{escapeText(content, 2000)}</div>
        <div className="row wrap faint">
          <span>
            Stored <Time at={createdAt} />
          </span>
          {promotedAt && (
            <span className="badge good" title="In MEMORY.md">
              promoted
            </span>
          )}
          {scope === "shared" && (
            <span className="badge" title="From a shared session; never promoted">
              shared
            </span>
          )}
          {kind && <span className="badge accent">{kind}</span>}
          {tags.map((tag) => (
            <span key={tag} className="badge bidi">
              {escapeText(tag, 40)}
            </span>
          ))}
          <span className="truncate bidi" title="Keywords">
            {escapeText(conceptTags.join(" · "), 120)}
          </span>
        </div>
      </div>
      <Button
        kind="plain"
        small
        icon={Pencil}
        aria-label={`Edit: ${escapeText(content, 60)}`}
        title={disabledReason ?? "Edit"}
        disabled={Boolean(disabledReason)}
        onClick={onEdit}
      />
      <Button
        kind="plain"
        small
        icon={Trash2}
        aria-label={`Delete: ${escapeText(content, 60)}`}
        title={disabledReason ?? "Delete"}
        disabled={Boolean(disabledReason)}
        onClick={onForget}
      />
    </li>
  );
}
