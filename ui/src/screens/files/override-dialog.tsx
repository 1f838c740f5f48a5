// Asked before an inherited file becomes an agent's own.

import { useState } from "react";
import type { FileScope } from "../../api/files";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { type OverrideKind, skipOverrideConfirmation } from "./use-save-file";

interface OverrideDialogProps {
  kind: OverrideKind;
  scope: FileScope;
  path: string;
  onConfirm: () => void;
  onClose: () => void;
}

export function OverrideDialog({ kind, scope, path, onConfirm, onClose }: OverrideDialogProps) {
  const [skipNextTime, setSkipNextTime] = useState(false);
  const name = escapeText(path, 80);
  if (kind === "pinned") {
    return (
      <Confirm
        title={`Override the pinned ${name}?`}
        action="Override and save"
        onConfirm={onConfirm}
        onClose={onClose}
      >
        <p>
          This file is pinned: what the agent is served was reviewed. Your text takes its place for
          this agent alone, without a review.
        </p>
        <p>
          The pin stays beneath. Reverting goes back to it, and accepting an update drops your text.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={`Make ${name} this agent’s own?`}
      action="Override and save"
      onConfirm={() => {
        if (skipNextTime) skipOverrideConfirmation(scope);
        onConfirm();
      }}
      onClose={onClose}
    >
      <p>
        So far it is inherited. Your text will be this agent’s alone: its siblings keep inheriting,
        and later edits beneath reach them but no longer this agent.
      </p>
      <p className="soft">Revert takes your text away again and goes back to what lies beneath.</p>
      <label className="check">
        <input
          type="checkbox"
          checked={skipNextTime}
          onChange={(event) => setSkipNextTime(event.target.checked)}
        />
        Don’t ask again for this agent
      </label>
    </Confirm>
  );
}
