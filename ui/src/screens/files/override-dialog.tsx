// Confirms that an agent overrides an inherited or pinned file.

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
        title={`Override pinned ${name}?`}
        action="Override and save"
        onConfirm={onConfirm}
        onClose={onClose}
      >
        <p>Your text replaces the reviewed version for this agent only, without review.</p>
        <p>Reverting restores the pinned version. Accepting an update removes the override.</p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={`Override ${name}?`}
      action="Override and save"
      onConfirm={() => {
        if (skipNextTime) skipOverrideConfirmation(scope);
        onConfirm();
      }}
      onClose={onClose}
    >
      <p>
        This file is inherited. Your text applies to this agent only, and later changes of the
        template or the defaults no longer reach it.
      </p>
      <p className="soft">Revert removes this override; the agent inherits the file again.</p>
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
