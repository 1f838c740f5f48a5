// Confirms the deletion of a memory.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { forget, type Memory } from "../../api/memories";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { toast } from "../../components/toast";

interface ForgetProps {
  agentId: string;
  memory: Memory;
  onClose: () => void;
}

export function ForgetDialog({ agentId, memory, onClose }: ForgetProps) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => forget(agentId, memory.id),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["memories"] });
      toast("Memory deleted");
      onClose();
    },
  });
  return (
    <Confirm
      title="Delete memory?"
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <blockquote className="memory-quote bidi">{escapeText(memory.content, 2000)}</blockquote>
      <p>
        Its recall statistics are deleted too
        {memory.promotedAt && ", and its line is removed from MEMORY.md"}. This cannot be undone.
      </p>
    </Confirm>
  );
}
