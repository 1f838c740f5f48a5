// Edits a memory, which keeps its recalls.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { editMemory, type Memory } from "../../api/memories";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";

interface EditMemoryProps {
  agentId: string;
  memory: Memory;
  onClose: () => void;
}

export function EditMemoryDialog({ agentId, memory, onClose }: EditMemoryProps) {
  const [content, setContent] = useState(memory.content);
  const [tags, setTags] = useState(memory.tags.join(", "));
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () =>
      editMemory(agentId, memory.id, {
        content,
        tags: tags
          .split(",")
          .map((tag) => tag.trim())
          .filter(Boolean),
      }),
    meta: { skipErrorToast: true },
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["memories"] });
      toast("Memory saved");
      onClose();
    },
  });
  return (
    <FormDialog
      title="Edit memory"
      action="Save"
      busy={save.isPending}
      error={save.error}
      disabled={!content.trim()}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field
        label="Content"
        hint={
          memory.promotedAt
            ? "Its recalls stay, and its line in MEMORY.md follows."
            : "Its recalls stay."
        }
      >
        <textarea
          className="input"
          maxLength={2000}
          value={content}
          onChange={(event) => setContent(event.target.value)}
        />
      </Field>
      <Field label="Tags" hint="Comma-separated.">
        <input className="input" value={tags} onChange={(event) => setTags(event.target.value)} />
      </Field>
    </FormDialog>
  );
}
