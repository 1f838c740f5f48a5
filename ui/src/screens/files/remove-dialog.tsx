// Taking away what a layer says of a file: what lies beneath shows again, or nothing does.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteFile, type Place } from "../../api/files";
import { sentence } from "../../api/problem";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";
import type { FoundProps } from "./file-pane";
import type { Row } from "./file-rows";
import { refresh } from "./use-save-file";

export interface Removal {
  kind: "revert" | "delete";
  label: string;
  says: string;
}

const TO_PIN = {
  kind: "revert",
  label: "Revert to the pin",
  says: "This agent’s own text is taken away, and what was last reviewed is served again. An update that waits for a review goes on waiting.",
} as const;
const TO_BENEATH = {
  kind: "revert",
  label: "Revert",
  says: "This agent’s own text is taken away, and what lies beneath is served again, if there is something. Where there is nothing, the file is gone.",
} as const;
const TO_DEFAULTS = {
  kind: "revert",
  label: "Revert to the defaults",
  says: "The template’s own text is taken away. If the defaults have this file, theirs shows again; if not, the file is gone.",
} as const;
const AWAY = { kind: "delete", label: "Delete", says: "The file is taken away." } as const;

/** What taking this file away means here; null where there is nothing to take. */
export function removalOf(place: Place, row: Row): Removal | null {
  if (row.inherited || (row.managed && place.kind === "agent")) return null;
  if (place.kind === "agent") return row.pinned ? TO_PIN : TO_BENEATH;
  return place.kind === "template" ? TO_DEFAULTS : AWAY;
}

interface RemoveDialogProps extends FoundProps {
  removal: Removal;
  onClose: () => void;
}

export function RemoveDialog({ place, row, removal, onClose }: RemoveDialogProps) {
  const queries = useQueryClient();
  const [reason, setReason] = useState("");
  const remove = useMutation({
    meta: { quiet: true },
    mutationFn: () => deleteFile(place, row.path, row.file.etag, reason),
    onSuccess: () => {
      toast(`${removal.kind === "revert" ? "Reverted" : "Deleted"} ${plain(row.path, 80)}.`);
      refresh(queries, place);
      onClose();
    },
  });
  return (
    <Confirm
      title={`${removal.label}: ${plain(row.path, 80)}`}
      action={removal.label}
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{removal.says} Its history stays, and from there it can be restored.</p>
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
          {sentence(remove.error)}
        </p>
      )}
    </Confirm>
  );
}
