// Taking away what a layer says of a file: what lies beneath shows again, or nothing does.

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
  label: "Revert to the pin",
  description:
    "This agent’s own text is taken away, and what was last reviewed is served again. An update that waits for a review goes on waiting.",
} as const;
const REVERT_OVERRIDE = {
  kind: "revert",
  label: "Revert",
  description:
    "This agent’s own text is taken away, and what lies beneath is served again, if there is something. Where there is nothing, the file is gone.",
} as const;
const REVERT_TO_DEFAULTS = {
  kind: "revert",
  label: "Revert to the defaults",
  description:
    "The template’s own text is taken away. If the defaults have this file, theirs shows again; if not, the file is gone.",
} as const;
const DELETE = { kind: "delete", label: "Delete", description: "The file is taken away." } as const;

/** What taking this file away means here; null where there is nothing to take. */
export function removalOf(scope: FileScope, row: TreeRow): Removal | null {
  if (row.inherited || (row.managed && scope.kind === "agent")) return null;
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
      toast(`${removal.kind === "revert" ? "Reverted" : "Deleted"} ${escapeText(row.path, 80)}.`);
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
      <p>{removal.description} Its history stays, and from there it can be restored.</p>
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
