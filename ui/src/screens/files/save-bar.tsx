// The foot of the editor: what a save will do, why it is done, and the button.

import { useQuery } from "@tanstack/react-query";
import { Save } from "lucide-react";
import { Link } from "react-router";
import type { Place } from "../../api/files";
import { type Impact, impactQuery } from "../../api/templates";
import { Button } from "../../components/button";
import type { Draft } from "./use-draft";
import type { useSaving } from "./use-save-file";

interface SaveBarProps {
  place: Place;
  path: string;
  draft: Draft;
  saving: ReturnType<typeof useSaving>;
  gone: boolean;
}

export function SaveBar({ place, path, draft, saving, gone }: SaveBarProps) {
  const canSave = draft.isDirty || gone;
  return (
    <form
      className="save-bar"
      aria-label="Save"
      onSubmit={(event) => {
        event.preventDefault();
        saving.request();
      }}
    >
      <Told place={place} path={path} isDirty={draft.isDirty} />
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
        disabled={!draft.isDirty || gone}
        onClick={() =>
          draft.replace(
            draft.meanwhile ?? draft.base,
            (draft.meanwhile ?? draft.base).content ?? "",
          )
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

function Told({ place, path, isDirty }: { place: Place; path: string; isDirty: boolean }) {
  const { data } = useQuery(impactQuery(place, path));
  const state = isDirty ? "Unsaved changes" : "Saved";
  return (
    <div className="save-told" role="status">
      <span className={isDirty ? "badge accent" : "faint"}>{state}</span>
      {data && <ImpactWords place={place} impact={data} />}
    </div>
  );
}

const agents = (count: number) =>
  count === 1 ? "1 agent" : `${count.toLocaleString("en")} agents`;

function keeping(place: Place, count: number): string {
  if (place.kind === "defaults") return `${count === 1 ? "has" : "have"} a nearer text of it`;
  return count === 1 ? "overrides it and keeps its own" : "override it and keep theirs";
}

/** What an edit of a shared file does to those that follow it. */
export function ImpactWords({ place, impact }: { place: Place; impact: Impact }) {
  const { changes, asked, shadowed, followers } = impact;
  if (!followers) return <span className="faint">No agent follows this yet.</span>;
  const review = place.kind === "template" && asked > 0;
  return (
    <span className="impact">
      {changes > 0 && (
        <span>
          {agents(changes)} {changes === 1 ? "changes" : "change"} at once
        </span>
      )}
      {asked > 0 && (
        <span>
          {agents(asked)} will be asked
          {review && (
            <>
              {" "}
              (<Link to={`/agent-templates/${encodeURIComponent(place.id)}/review`}>review</Link>)
            </>
          )}
        </span>
      )}
      {shadowed > 0 && (
        <span className="soft">
          {agents(shadowed)} {keeping(place, shadowed)}
        </span>
      )}
    </span>
  );
}
