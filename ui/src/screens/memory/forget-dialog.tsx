// Asks before a memory is forgotten.

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
      toast("It is forgotten.");
      onClose();
    },
  });
  return (
    <Confirm
      title="Forget this memory?"
      action="Forget"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <blockquote className="quoted bidi">{escapeText(memory.content, 2000)}</blockquote>
      <p>
        That it was ever recalled is forgotten too
        {memory.promotedAt && ", and the line that a dream made of it in MEMORY.md is removed"}.
        There is no way back.
      </p>
    </Confirm>
  );
}
