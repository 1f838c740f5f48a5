// Save bar of the editor: status, impact, reason and buttons.

import { useQuery } from "@tanstack/react-query";
import { Save } from "lucide-react";
import { Link } from "react-router";
import type { FileScope } from "../../api/files";
import { type Impact, impactQuery } from "../../api/templates";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import type { Draft } from "./use-draft";
import type { useSaveFile } from "./use-save-file";

interface SaveBarProps {
  scope: FileScope;
  path: string;
  draft: Draft;
  saving: ReturnType<typeof useSaveFile>;
  isDeleted: boolean;
}

export function SaveBar({ scope, path, draft, saving, isDeleted }: SaveBarProps) {
  const canSave = draft.isDirty || isDeleted;
  return (
    <form
      className="save-bar"
      aria-label="Save"
      onSubmit={(event) => {
        event.preventDefault();
        saving.requestSave();
      }}
    >
      <SaveStatus scope={scope} path={path} isDirty={draft.isDirty} />
      <input
        className="input reason"
        aria-label="Reason (optional)"
        placeholder="Reason (optional)"
        maxLength={500}
        value={saving.reason}
        onChange={(event) => saving.setReason(event.target.value)}
      />
      <Button
        kind="plain"
        disabled={!draft.isDirty || isDeleted}
        onClick={() =>
          draft.replace(draft.newer ?? draft.base, (draft.newer ?? draft.base).content ?? "")
        }
      >
        Discard
      </Button>
      <Button
        kind="primary"
        type="submit"
        icon={Save}
        busy={saving.isSaving}
        disabled={!canSave}
        title="⌘S"
      >
        Save
      </Button>
    </form>
  );
}

function SaveStatus({
  scope,
  path,
  isDirty,
}: {
  scope: FileScope;
  path: string;
  isDirty: boolean;
}) {
  const { data } = useQuery(impactQuery(scope, path));
  const state = isDirty ? "Unsaved changes" : "Saved";
  return (
    <div className="save-status" role="status">
      <span className={isDirty ? "badge accent" : "faint"}>{state}</span>
      {data && <ImpactSummary scope={scope} impact={data} />}
    </div>
  );
}

const agentCount = (count: number) =>
  count === 1 ? "1 agent" : `${count.toLocaleString("en")} agents`;

function overrideText(scope: FileScope, count: number): string {
  if (scope.kind === "defaults") return `${count === 1 ? "has" : "have"} a closer version`;
  return count === 1 ? "overrides this file" : "override this file";
}

function clashText(clashes: NonNullable<Impact["clashes"]>): string {
  const [first, ...others] = clashes;
  const named = `${escapeText(first?.path ?? "")} of ${first?.layer}`;
  return others.length ? `${named} and ${others.length} more` : named;
}

/** Impact of an edit on the agents of a template. */
export function ImpactSummary({ scope, impact }: { scope: FileScope; impact: Impact }) {
  const { changes, asked: pendingReview, shadowed, followers, clashes = [] } = impact;
  if (clashes[0]) return <span>Clashes with {clashText(clashes)}</span>;
  if (!followers) return <span className="faint">No agents affected</span>;
  const canReview = scope.kind === "template" && pendingReview > 0;
  return (
    <span className="impact">
      {changes > 0 && (
        <span>
          {agentCount(changes)} {changes === 1 ? "updates" : "update"} immediately
        </span>
      )}
      {pendingReview > 0 && (
        <span>
          {agentCount(pendingReview)} {pendingReview === 1 ? "needs" : "need"} review
          {canReview && (
            <>
              {" "}
              (<Link to={`/agent-templates/${encodeURIComponent(scope.id)}/review`}>review</Link>)
            </>
          )}
        </span>
      )}
      {shadowed > 0 && (
        <span className="soft">
          {agentCount(shadowed)} {overrideText(scope, shadowed)}
        </span>
      )}
    </span>
  );
}
