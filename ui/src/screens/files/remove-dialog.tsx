// Reverts an override or deletes a file.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteFile, type FileScope } from "../../api/files";
import { toSentence } from "../../api/problem";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";
import type { OpenFileProps } from "./file-pane";
import type { TreeRow } from "./file-rows";
import { refreshFiles } from "./use-save-file";

export interface Removal {
  kind: "revert" | "delete";
  label: string;
  description: string;
}

const REVERT_TO_PIN = {
  kind: "revert",
  label: "Revert to pinned version",
  description: "Removes this agent’s override; the reviewed version is served again.",
} as const;
const REVERT_OVERRIDE = {
  kind: "revert",
  label: "Revert",
  description: "Removes this override; the agent inherits the file again.",
} as const;
const REVERT_TO_DEFAULTS = {
  kind: "revert",
  label: "Revert to defaults",
  description:
    "Removes the template’s version; the file of the defaults is used again. If there is none, the file is deleted.",
} as const;
const DELETE = { kind: "delete", label: "Delete", description: "Deletes the file." } as const;

/** What removing a file means in a scope; null if it cannot be removed. */
export function removalOf(scope: FileScope, row: TreeRow): Removal | null {
  if (row.inherited || (row.managed && scope.kind === "agent")) return null;
  if (scope.kind === "agent" && !row.file.overrides) return DELETE;
  if (scope.kind === "agent") return row.pinned ? REVERT_TO_PIN : REVERT_OVERRIDE;
  return scope.kind === "template" ? REVERT_TO_DEFAULTS : DELETE;
}

interface RemoveDialogProps extends OpenFileProps {
  removal: Removal;
  onClose: () => void;
}

export function RemoveDialog({ scope, row, removal, onClose }: RemoveDialogProps) {
  const queries = useQueryClient();
  const [reason, setReason] = useState("");
  const remove = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => deleteFile(scope, row.path, row.file.etag, reason),
    onSuccess: () => {
      toast(`${removal.kind === "revert" ? "Reverted" : "Deleted"} ${escapeText(row.path, 80)}`);
      refreshFiles(queries, scope);
      onClose();
    },
  });
  return (
    <Confirm
      title={`${removal.label}: ${escapeText(row.path, 80)}`}
      action={removal.label}
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{removal.description} It can be restored from the history.</p>
      <Field label="Reason (optional)">
        <input
          className="input"
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
      </Field>
      {remove.isError && (
        <p className="notice bad" role="alert">
          {toSentence(remove.error)}
        </p>
      )}
    </Confirm>
  );
}
