import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  createWorkspace,
  hasWorkspaceNotes,
  patchWorkspace,
  type WorkspaceRecord,
} from "../../api/workspaces";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";

interface WorkspaceFormProps {
  workspace?: WorkspaceRecord;
  onClose: () => void;
  onSaved?: (workspace: WorkspaceRecord) => void;
}

/** Creates or edits a shared workspace. */
export function WorkspaceForm({ workspace, onClose, onSaved }: WorkspaceFormProps) {
  const [name, setName] = useState(workspace?.name ?? "");
  const [description, setDescription] = useState(workspace?.description ?? "");
  const [hasNotes, setHasNotes] = useState(workspace ? hasWorkspaceNotes(workspace) : true);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () => {
      const config = { harness: { enabled: hasNotes } };
      const body = { name, description: description.trim() || null, config };
      return workspace ? patchWorkspace(workspace.workspaceId, body) : createWorkspace(body);
    },
    meta: { skipErrorToast: true },
    onSuccess: (saved) => {
      void queries.invalidateQueries({ queryKey: ["workspaces"] });
      toast(workspace ? "Workspace saved" : "Workspace created");
      onClose();
      onSaved?.(saved);
    },
  });
  return (
    <FormDialog
      title={workspace ? "Edit workspace" : "New workspace"}
      action={workspace ? "Save" : "Create"}
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field label="Name">
        <input
          className="input"
          required
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
      <Field label="Description" hint="Part of the agents’ prompts.">
        <textarea
          className="input"
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
      </Field>
      <label className="check">
        <input
          type="checkbox"
          checked={hasNotes}
          onChange={(event) => setHasNotes(event.target.checked)}
        />
        <span>
          Workspace notes in prompts{" "}
          <span className="faint">Its MEMORY.md is part of the prompt in any case</span>
        </span>
      </label>
    </FormDialog>
  );
}
